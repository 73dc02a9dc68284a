//! Loops unrolled exactly as often as the source says.
//!
//! How often a loop is unrolled decides how much of it is index arithmetic and
//! how many loads are in flight, so where that is what a kernel is about it must
//! not be left to two optimisers (LLVM, and `ptxas` after it). A loop whose body
//! begins with [`keep_rolled`] stays as written, and [`unrolled`] writes its body
//! out.

/// The most copies that [`unrolled`] can write.
pub const MAX_UNROLL: usize = 32;

/// Said first in the body of a loop: nobody unrolls it. Costs no instruction.
///
/// It is the directive `.pragma "nounroll"`, which `ptxas` obeys where it stands
/// at the head of a loop. To LLVM it is inline assembly, which `cuda_builder`
/// marks as convergent like every other, and around a convergent operation LLVM
/// unrolls no loop that would need a remainder. (A loop whose number of turns is
/// a small constant may still be unrolled completely.)
#[inline(always)]
pub fn keep_rolled() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a directive to ptxas; it becomes no instruction and touches nothing.
    unsafe {
        core::arch::asm!(".pragma \"nounroll\";", options(nostack, preserves_flags));
    }
}

/// A value in a register, of which can be said when it is computed. Costs no instruction.
pub trait Register: Copy {
    /// The value, computed before what is read from memory behind this call.
    ///
    /// Where many sums are made of what is read, LLVM reads everything first and adds
    /// afterwards, which takes a register for each value.
    #[must_use]
    fn settled(self) -> Self;

    /// The value, computed here also where only a branch behind this call uses it.
    ///
    /// LLVM moves what only a branch needs into it. A branch that is a store and nothing
    /// else becomes a store with a predicate, and the code around it stays in one piece.
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
                    // SAFETY: a comment; it becomes no instruction and touches nothing. LLVM
                    // must take it for something that reads and writes memory.
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

/// Calls `body` with 0, 1, … `COUNT - 1`, as `COUNT` copies of it and no loop.
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
    macro_rules! copies {
        ($($k:literal)+) => { $( if $k < COUNT { body($k); } )+ };
    }
    copies!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
}
