//! Values as 32-bit words, so that code for shuffles and memory serves every type.

/// The most 32-bit words that a value has.
pub const MAX_WORDS: usize = 4;

/// A value as 32-bit words, the unit of registers and shuffles.
pub trait Words: Copy {
    /// The number of words: 1 to 4.
    const COUNT: usize;

    /// The words, least significant first, followed by zeros.
    #[must_use]
    fn to_words(self) -> [u32; MAX_WORDS];

    /// The value with these words; words from `COUNT` on are ignored.
    #[must_use]
    fn from_words(words: [u32; MAX_WORDS]) -> Self;
}

macro_rules! one_word {
    ($($type:ident),*) => {$(
        impl Words for $type {
            const COUNT: usize = 1;

            #[inline(always)]
            fn to_words(self) -> [u32; MAX_WORDS] {
                [self as u32, 0, 0, 0]
            }

            #[inline(always)]
            fn from_words([word, ..]: [u32; MAX_WORDS]) -> Self {
                word as Self
            }
        }
    )*};
}

one_word!(i32, u32);

macro_rules! two_words {
    ($($type:ident),*) => {$(
        impl Words for $type {
            const COUNT: usize = 2;

            #[inline(always)]
            fn to_words(self) -> [u32; MAX_WORDS] {
                [self as u32, (self >> 32) as u32, 0, 0]
            }

            #[inline(always)]
            fn from_words([low, high, ..]: [u32; MAX_WORDS]) -> Self {
                (u64::from(high) << 32 | u64::from(low)) as Self
            }
        }
    )*};
}

two_words!(i64, u64);

impl Words for f32 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        [self.to_bits(), 0, 0, 0]
    }

    #[inline(always)]
    fn from_words([word, ..]: [u32; MAX_WORDS]) -> Self {
        Self::from_bits(word)
    }
}

impl Words for f64 {
    const COUNT: usize = 2;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        self.to_bits().to_words()
    }

    #[inline(always)]
    fn from_words(words: [u32; MAX_WORDS]) -> Self {
        Self::from_bits(u64::from_words(words))
    }
}
