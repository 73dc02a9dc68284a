//! What the table of kernels, [`registry`](crate::registry), is made of.

use core::fmt;

/// Types that kernels compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `i32`.
    I32,
    /// `u32`.
    U32,
    /// `i64`.
    I64,
    /// `u64`.
    U64,
}

impl Scalar {
    /// Its name in Rust, and at the end of entry points.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
        }
    }

    /// Its size in memory.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A type that has a [`Scalar`].
pub trait HasScalar: Copy {
    /// Which.
    const SCALAR: Scalar;
}

macro_rules! has_scalar {
    ($($type:ty => $scalar:ident;)*) => {$(
        impl HasScalar for $type {
            const SCALAR: Scalar = Scalar::$scalar;
        }
    )*};
}

has_scalar! {
    f32 => F32;
    f64 => F64;
    i32 => I32;
    u32 => U32;
    i64 => I64;
    u64 => U64;
}

/// What a kernel is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// A step of the textbook's ladder: it shows one technique.
    Textbook,
    /// What the library launches where it may choose.
    Tuned,
    /// A step of a computation that another kernel leads.
    Step,
    /// It measures the device.
    Instrument,
}

impl Role {
    /// One word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Textbook => "textbook",
            Self::Tuned => "tuned",
            Self::Step => "step",
            Self::Instrument => "instrument",
        }
    }
}

/// The benchmark's row of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// It has a row of its name.
    Row,
    /// It has none, and this is why.
    Not(&'static str),
}

/// A kernel of `baselines/<family>.cu` that does the same on the same arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin {
    /// Its entry point.
    pub entry: &'static str,
    /// What it is called in reports; `None`: as the compiler, being the same kernel in
    /// CUDA C++.
    pub style: Option<&'static str>,
}

/// What a launch works on, as far as geometry and cost depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Points, elements or bodies along x, y and z; 1 along an axis that is not there.
    pub extents: [usize; 3],
    /// Threads per block, for kernels that leave them to the caller.
    pub block: Option<u32>,
    /// Blocks of the kernel that the device holds at a time, for kernels whose blocks
    /// share the work among them.
    pub resident_blocks: usize,
    /// How far the stencil reaches to either side, for kernels that leave it to the caller;
    /// else 0.
    pub radius: u32,
    /// What lies beyond the ends of the axes, as such kernels take it.
    pub rules: u32,
}

impl Problem {
    /// A line, an array or a system of `n`.
    #[must_use]
    pub const fn line(n: usize) -> Self {
        Self::volume(n, 1, 1)
    }

    /// A grid of two dimensions.
    #[must_use]
    pub const fn plane(nx: usize, ny: usize) -> Self {
        Self::volume(nx, ny, 1)
    }

    /// A grid of three dimensions.
    #[must_use]
    pub const fn volume(nx: usize, ny: usize, nz: usize) -> Self {
        Self {
            extents: [nx, ny, nz],
            block: None,
            resident_blocks: 1,
            radius: 0,
            rules: 0,
        }
    }

    /// The same problem, with `block` threads per block.
    #[must_use]
    pub const fn with_block(mut self, block: u32) -> Self {
        self.block = Some(block);
        self
    }

    /// The same problem, on a device that holds `blocks` blocks of the kernel at a time.
    #[must_use]
    pub const fn with_resident_blocks(mut self, blocks: usize) -> Self {
        self.resident_blocks = blocks;
        self
    }

    /// The same problem, with stencils of this radius and these rules for the ends.
    #[must_use]
    pub const fn with_stencil(mut self, radius: u32, rules: u32) -> Self {
        (self.radius, self.rules) = (radius, rules);
        self
    }

    /// The product of the extents, at most `usize::MAX`.
    #[must_use]
    pub const fn points(&self) -> usize {
        let [nx, ny, nz] = self.extents;
        nx.saturating_mul(ny).saturating_mul(nz)
    }
}

/// Grid, block and dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub dynamic_shared_bytes: u32,
}

impl Geometry {
    /// `grid` blocks of `block` threads along x.
    #[must_use]
    pub const fn linear(grid: u32, block: u32) -> Self {
        Self::new([grid, 1, 1], [block, 1, 1])
    }

    /// `grid` blocks of `block` threads, without dynamic shared memory.
    #[must_use]
    pub const fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            dynamic_shared_bytes: 0,
        }
    }

    /// The same with dynamic shared memory.
    #[must_use]
    pub const fn with_dynamic_shared_bytes(mut self, bytes: u32) -> Self {
        self.dynamic_shared_bytes = bytes;
        self
    }
}

/// The least that has to be done: bytes moved to and from memory, operations on floats.
/// Each at most `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Bytes.
    pub bytes: u64,
    /// Floating-point operations; a fused multiply-add is two.
    pub flops: u64,
}

/// Why a kernel cannot be launched for a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Something is more than the kernel counts.
    TooMany {
        /// The kernel's entry point.
        kernel: &'static str,
        /// What is counted.
        what: Counted,
        /// How many there are.
        given: u128,
        /// The most there may be.
        limit: u64,
    },
    /// A block has no points, so that no number of them is enough.
    NothingPerBlock {
        /// The kernel's entry point.
        kernel: &'static str,
    },
}

/// What a kernel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The blocks that a number of points needs.
    BlocksFor {
        /// The points.
        points: usize,
    },
    /// Points along an axis, or something of that kind.
    Extent(&'static str),
    /// Rows along y of a field.
    Rows {
        /// Points of a row.
        nx: usize,
    },
    /// Planes along z of a field.
    Planes {
        /// Points of a row.
        nx: usize,
        /// Rows of a plane.
        ny: usize,
    },
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlocksFor { points } => write!(f, "the number of blocks for {points} points"),
            Self::Extent(what) => f.write_str(what),
            Self::Rows { nx } => write!(f, "ny of a field with rows of {nx} points"),
            Self::Planes { nx, ny } => {
                write!(f, "nz of a field with planes of {nx} × {ny} points")
            }
        }
    }
}

/// How many groups of `per_group` cover `points`: the extent of a grid along one axis.
///
/// # Errors
///
/// [`Refusal`] when the number does not fit `u32`, or a group has no points.
pub fn blocks_for(kernel: &'static str, points: usize, per_group: usize) -> Result<u32, Refusal> {
    if per_group == 0 {
        return Err(Refusal::NothingPerBlock { kernel });
    }
    let groups = points.div_ceil(per_group);
    u32::try_from(groups).map_err(|_| Refusal::TooMany {
        kernel,
        what: Counted::BlocksFor { points },
        given: groups as u128,
        limit: u64::from(u32::MAX),
    })
}

/// The launch of a stencil in space that reads up to `RADIUS` away along z and writes fields of
/// `T`: what `halo_stencil` marches with on a device of 132 multiprocessors (H100, H200).
///
/// # Errors
///
/// [`Refusal`] for fields that it cannot count.
pub fn march_of_stencil<T, const RADIUS: usize>(
    kernel: &'static str,
    field: &Problem,
) -> Result<Geometry, Refusal> {
    match halo_stencil::blocks(3, field.extents, 16 / size_of::<T>(), RADIUS, 132) {
        Some(blocks) => {
            let [x, y] = blocks.block;
            Ok(Geometry::new(blocks.grid, [x, y, 1]))
        }
        None => Err(Refusal::TooMany {
            kernel,
            what: Counted::Extent("points along an axis or of a plane"),
            given: field.points() as u128,
            limit: halo_stencil::MAX_EXTENT.into(),
        }),
    }
}

/// What a stencil does to `field`: fields of `T` that are read or written once, and operations a
/// point.
#[must_use]
pub const fn cost_of_stencil<T>(field: &Problem, fields: usize, flops: u64) -> Cost {
    let points = field.points() as u64;
    Cost {
        bytes: points.saturating_mul((fields * size_of::<T>()) as u64),
        flops: points.saturating_mul(flops),
    }
}

/// One entry point.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The entry point, as in the PTX: `<family>_<variant>`, for most with the type behind.
    pub name: &'static str,
    /// The family, as the folders are called.
    pub family: &'static str,
    /// What tells it from others of the family and the type.
    pub variant: &'static str,
    /// The type it computes with.
    pub scalar: Scalar,
    /// What it is there for.
    pub role: Role,
    /// What it computes and how, in a line.
    pub computes: &'static str,
    /// What one block works on, for a reader; `–` where there is no tile.
    pub tile: &'static str,
    /// What it does not take, in words; empty: nothing that the family takes. The
    /// geometry, or the family's check, refuses it.
    pub restrictions: &'static str,
    #[doc(hidden)]
    pub geometry_of: fn(&'static str, &Problem) -> Result<Geometry, Refusal>,
    #[doc(hidden)]
    pub cost_of: fn(&Problem) -> Cost,
    /// A problem that it takes: the textbook's, where there is one.
    pub example: Problem,
    /// Whether the benchmark has a row of it.
    pub measured: Measured,
    /// The same in CUDA C++.
    pub twins: &'static [Twin],
    /// The file that it stands in, from the root of the workspace.
    pub file: &'static str,
    /// The line of its entry, from 1.
    pub line: u32,
}

impl Entry {
    /// Grid, block and dynamic shared memory.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for a problem that has more of something than the kernel counts.
    pub fn geometry(&self, problem: &Problem) -> Result<Geometry, Refusal> {
        (self.geometry_of)(self.name, problem)
    }

    /// The least that a launch has to do.
    #[must_use]
    pub fn cost(&self, problem: &Problem) -> Cost {
        (self.cost_of)(problem)
    }
}

/// A kernel that has an entry in the table.
pub trait Registered: cuda_std::host::Kernel {
    /// The entry.
    const ENTRY: Entry;
}

/// A family: its kernels in the order of the ladder.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// As its folders are called.
    pub name: &'static str,
    /// What it computes, in a line.
    pub computes: &'static str,
    /// All its entry points.
    pub kernels: &'static [Entry],
}

impl Family {
    /// Whether its kernels measure the device instead of computing anything: there is
    /// nothing to port, and nothing to compare with.
    #[must_use]
    pub fn is_instrument(&self) -> bool {
        self.kernels
            .iter()
            .all(|entry| entry.role == Role::Instrument)
    }
}

/// The family that a module `gpu_kernels::<family>::…` belongs to.
#[doc(hidden)]
#[must_use]
pub const fn family_of(module: &'static str) -> &'static str {
    let inside = after(module, "gpu_kernels::");
    let bytes = inside.as_bytes();
    let mut end = 0;
    while end < bytes.len() && bytes[end] != b':' {
        end += 1;
    }
    inside.split_at(end).0
}

/// What is left of an entry point without its family and its type.
#[doc(hidden)]
#[must_use]
pub const fn variant_of(
    kernel: &'static str,
    family: &'static str,
    scalar: Scalar,
) -> &'static str {
    let inside = after(after(kernel, family), "_");
    let suffix = scalar.name().as_bytes();
    let bytes = inside.as_bytes();
    let Some(end) = bytes.len().checked_sub(suffix.len() + 1) else {
        return inside;
    };
    let mut at = 0;
    while at < suffix.len() {
        if bytes[end + 1 + at] != suffix[at] {
            return inside;
        }
        at += 1;
    }
    assert!(
        bytes[end] == b'_',
        "the type is the entry point's last word"
    );
    inside.split_at(end).0
}

/// `text` without the prefix that it begins with.
const fn after(text: &'static str, prefix: &str) -> &'static str {
    let (bytes, wanted) = (text.as_bytes(), prefix.as_bytes());
    let mut at = 0;
    while at < wanted.len() {
        assert!(
            at < bytes.len() && bytes[at] == wanted[at],
            "a kernel is called <family>_<variant>, and its module is the family's"
        );
        at += 1;
    }
    text.split_at(wanted.len()).1
}
