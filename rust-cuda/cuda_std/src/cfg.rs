//! Chooses code by the compute capability that the kernel is compiled for.

/// A compute capability: the version of a GPU's instruction set and features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ComputeCapability {
    /// 3.5: Kepler.
    Compute35,
    /// 3.7: Kepler.
    Compute37,
    /// 5.0: Maxwell.
    Compute50,
    /// 5.2: Maxwell.
    Compute52,
    /// 5.3: Maxwell.
    Compute53,
    /// 6.0: Pascal.
    Compute60,
    /// 6.1: Pascal.
    Compute61,
    /// 6.2: Pascal.
    Compute62,
    /// 7.0: Volta.
    Compute70,
    /// 7.2: Volta.
    Compute72,
    /// 7.5: Turing.
    Compute75,
    /// 8.0: Ampere (A100).
    Compute80,
    /// 8.6: Ampere (RTX 30).
    Compute86,
    /// 8.7: Ampere (Jetson Orin).
    Compute87,
    /// 8.9: Ada Lovelace (RTX 40).
    Compute89,
    /// 9.0: Hopper (H100, H200).
    Compute90,
    /// 10.0: Blackwell (B100, B200).
    Compute100,
    /// 10.1: Blackwell (Jetson Thor).
    Compute101,
    /// 12.0: Blackwell (RTX 50).
    Compute120,
}

impl ComputeCapability {
    /// The compute capability that this code is compiled for.
    ///
    /// It is a constant: an `if` that compares it compiles only one branch into
    /// the kernel. On the device it is the target's (`-C target-cpu`, which
    /// `cuda_builder` sets; upstream's builder passes it in the environment
    /// variable that gives the function its name). In the emulator it is 9.0,
    /// the newest that any function of this crate requires.
    ///
    /// ```
    /// use cuda_std::cfg::ComputeCapability;
    ///
    /// let stages = if ComputeCapability::from_cuda_arch_env() >= ComputeCapability::Compute80 {
    ///     3 // asynchronous copies: load ahead
    /// } else {
    ///     1
    /// };
    /// assert_eq!(stages, 3);
    /// ```
    #[must_use]
    #[inline(always)]
    pub const fn from_cuda_arch_env() -> Self {
        if !cfg!(target_arch = "nvptx64") {
            return Self::Compute90;
        }
        // A target has the features of all earlier ones, so the newest decides.
        if cfg!(target_feature = "sm_120") {
            Self::Compute120
        } else if cfg!(target_feature = "sm_101") {
            Self::Compute101
        } else if cfg!(target_feature = "sm_100") {
            Self::Compute100
        } else if cfg!(target_feature = "sm_90") {
            Self::Compute90
        } else if cfg!(target_feature = "sm_89") {
            Self::Compute89
        } else if cfg!(target_feature = "sm_87") {
            Self::Compute87
        } else if cfg!(target_feature = "sm_86") {
            Self::Compute86
        } else if cfg!(target_feature = "sm_80") {
            Self::Compute80
        } else if cfg!(target_feature = "sm_75") {
            Self::Compute75
        } else if cfg!(target_feature = "sm_72") {
            Self::Compute72
        } else {
            // This crate does not compile for older targets.
            Self::Compute70
        }
    }
}
