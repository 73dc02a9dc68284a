//! Loops unrolled exactly as often as the source says.
//!
//! The unroll factor determines how much of a loop is index arithmetic and how many loads are in
//! flight. Kernels that depend on it must not leave it to the two optimisers, LLVM and `ptxas`. A
//! loop whose body begins with [`keep_rolled`] stays as written, and [`unrolled`] writes out copies
//! of its body.

/// The most copies that [`unrolled`] can write.
pub const MAX_UNROLL: usize = 32;

/// Call it first in the body of a loop to keep the loop rolled. Costs no instruction.
///
/// It is the directive `.pragma "nounroll"`, which `ptxas` obeys at the head of a loop. LLVM sees
/// inline assembly, which `cuda_builder` always marks as convergent, and LLVM unrolls no loop with
/// a convergent operation if that would need a remainder loop. (A loop with a small constant number
/// of iterations may still be unrolled completely.)
#[inline(always)]
pub fn keep_rolled() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a directive to ptxas; it becomes no instruction and touches nothing.
    unsafe {
        core::arch::asm!(".pragma \"nounroll\";", options(nostack, preserves_flags));
    }
}

/// A value in a register, with control over when it is computed. Costs no instruction.
pub trait Register: Copy {
    /// The value, computed before any load after this call.
    ///
    /// Where many loaded values are summed, LLVM loads all of them before it adds, which takes a
    /// register for each.
    #[must_use]
    fn settled(self) -> Self;

    /// The value, computed here even if only a branch after this call uses it.
    ///
    /// LLVM moves computations that only a branch needs into the branch. A branch with nothing but
    /// a store becomes a predicated store, and the code around it stays in one basic block.
    #[must_use]
    fn computed(self) -> Self;
}

macro_rules! register {
    ($($value:ty: $class:ident),+) => {$(
        impl Register for $value {
            #[inline(always)]
            fn settled(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                {
                    let mut value = self;
                    // SAFETY: a comment; it becomes no instruction and touches nothing. LLVM must
                    // assume that it reads and writes memory.
                    unsafe { core::arch::asm!("// {0}", inout($class) value, options(nostack)) };
                    value
                }
                #[cfg(not(target_arch = "nvptx64"))]
                self
            }

            #[inline(always)]
            fn computed(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                {
                    let mut value = self;
                    // SAFETY: a comment; it becomes no instruction and touches nothing.
                    unsafe {
                        core::arch::asm!("// {0}", inout($class) value, options(nomem, nostack));
                    }
                    value
                }
                #[cfg(not(target_arch = "nvptx64"))]
                self
            }
        }
    )+};
}

register!(f32: reg32, f64: reg64);

/// Calls `body` with 0, 1, … `COUNT - 1`, as `COUNT` copies of it without a loop.
///
/// `COUNT` is at most [`MAX_UNROLL`].
///
/// ```
/// use gpu_kernels::loops::unrolled;
///
/// let mut seen = [0; 4];
/// unrolled::<4>(|k| seen[k] += k + 1);
/// assert_eq!(seen, [1, 2, 3, 4]);
/// ```
#[inline(always)]
pub fn unrolled<const COUNT: usize>(mut body: impl FnMut(usize)) {
    const { assert!(COUNT <= MAX_UNROLL, "unrolled writes at most 32 copies") };
    // On devices copies keep arrays in registers. On the host a loop does the same, and compiles
    // faster.
    #[cfg(not(target_arch = "nvptx64"))]
    for k in 0..COUNT {
        body(k);
    }
    #[cfg(target_arch = "nvptx64")]
    {
        macro_rules! copies {
            ($($k:literal)+) => { $( if $k < COUNT { body($k); } )+ };
        }
        copies!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    }
}
