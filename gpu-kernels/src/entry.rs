//! The types of the table of kernels, [`registry`](crate::registry).

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
    /// The type's name in Rust, which is also the suffix of entry points.
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

    /// The size of a value in memory, in bytes.
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
    /// The type as a [`Scalar`].
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

/// The purpose of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// A step of the textbook's ladder, which shows one technique.
    Textbook,
    /// A kernel that the library launches where it may choose.
    Tuned,
    /// A step of a computation whose main part is another kernel.
    Step,
    /// A kernel that measures the device.
    Instrument,
}

impl Role {
    /// The role in one word.
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

/// Whether the benchmark has a row for a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// There is a row under the kernel's name.
    Row,
    /// There is no row, for this reason.
    Not(&'static str),
}

/// A kernel of `baselines/<family>.cu` that computes the same from the same arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin {
    /// The twin's entry point.
    pub entry: &'static str,
    /// The twin's name in reports. `None`: the same kernel in CUDA C++, which is named after the
    /// compiler.
    pub style: Option<&'static str>,
}

/// The properties of a launch's data that determine geometry and cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Points, elements or bodies along x, y and z; 1 along an axis that is absent.
    pub extents: [usize; 3],
    /// Threads per block, for kernels that let the caller choose.
    pub block: Option<u32>,
    /// Blocks of the kernel that the device holds at a time, for kernels whose blocks share the
    /// work.
    pub resident_blocks: usize,
    /// How far the stencil reaches to either side, for kernels that let the caller choose; else 0.
    pub radius: u32,
    /// The boundary rules at the ends of the axes, encoded as such kernels take them.
    pub rules: u32,
}

impl Problem {
    /// A line of `n` points, an array of `n` elements or a system of `n` bodies.
    #[must_use]
    pub const fn line(n: usize) -> Self {
        Self::volume(n, 1, 1)
    }

    /// A two-dimensional grid.
    #[must_use]
    pub const fn plane(nx: usize, ny: usize) -> Self {
        Self::volume(nx, ny, 1)
    }

    /// A three-dimensional grid.
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

    /// The same problem, with a stencil of this radius and these boundary rules.
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
    /// Dynamic shared memory of a block, in bytes.
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

    /// The same geometry with `bytes` of dynamic shared memory per block.
    #[must_use]
    pub const fn with_dynamic_shared_bytes(mut self, bytes: u32) -> Self {
        self.dynamic_shared_bytes = bytes;
        self
    }
}

/// The least work of a launch: bytes moved to and from memory, and operations on floats. Both
/// saturate at `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Bytes read and written.
    pub bytes: u64,
    /// Floating-point operations; a fused multiply-add is two.
    pub flops: u64,
}

/// Why a kernel cannot be launched for a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A number exceeds what the kernel can count.
    TooMany {
        /// The kernel's entry point.
        kernel: &'static str,
        /// What is counted.
        what: Counted,
        /// The number given.
        given: u128,
        /// The largest number allowed.
        limit: u64,
    },
    /// A block covers no points, so no number of blocks suffices.
    NothingPerBlock {
        /// The kernel's entry point.
        kernel: &'static str,
    },
}

/// What a kernel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The blocks needed for a number of points.
    BlocksFor {
        /// The points.
        points: usize,
    },
    /// Points along an axis, or another extent with this name.
    Extent(&'static str),
    /// Rows along y of a field.
    Rows {
        /// Points per row.
        nx: usize,
    },
    /// Planes along z of a field.
    Planes {
        /// Points per row.
        nx: usize,
        /// Rows per plane.
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

/// The number of groups of `per_group` points that cover `points`: the extent of a grid along one
/// axis.
///
/// # Errors
///
/// [`Refusal`] if the number does not fit `u32`, or a group has no points.
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

/// The launch of a stencil in this many dimensions that reads up to `RADIUS` points away along the
/// slowest axis and writes fields of `T`: the geometry that `halo_stencil` marches with on a device of 132
/// multiprocessors (H100, H200).
///
/// # Errors
///
/// [`Refusal`] for fields with more points than `halo_stencil` can count.
pub fn march_of_stencil<T, const DIMENSIONS: usize, const RADIUS: usize>(
    kernel: &'static str,
    field: &Problem,
) -> Result<Geometry, Refusal> {
    let points = 16 / size_of::<T>();
    match halo_stencil::blocks(DIMENSIONS, field.extents, points, RADIUS, 132) {
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

/// The cost of a stencil on `field`: `fields` fields of `T` are each read or written once, with
/// `flops` operations per point.
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
    /// The entry point, as in the PTX: `<family>_<variant>`, mostly followed by the type.
    pub name: &'static str,
    /// The family, named like its folders.
    pub family: &'static str,
    /// The variant: distinguishes it from other kernels of the same family and type.
    pub variant: &'static str,
    /// The type that the kernel computes with.
    pub scalar: Scalar,
    /// The kernel's purpose.
    pub role: Role,
    /// What the kernel computes and how, in one line.
    pub computes: &'static str,
    /// The tile of one block, as text for the reader; `–` if there is none.
    pub tile: &'static str,
    /// Inputs of the family that the kernel does not support, as text; empty if it supports all.
    /// The geometry, or the family's check, refuses them.
    pub restrictions: &'static str,
    #[doc(hidden)]
    pub geometry_of: fn(&'static str, &Problem) -> Result<Geometry, Refusal>,
    #[doc(hidden)]
    pub cost_of: fn(&Problem) -> Cost,
    /// A problem that the kernel supports: the textbook's, if there is one.
    pub example: Problem,
    /// Whether the benchmark has a row for it.
    pub measured: Measured,
    /// Kernels in CUDA C++ that compute the same.
    pub twins: &'static [Twin],
    /// The source file, relative to the root of the workspace.
    pub file: &'static str,
    /// The line of the entry in that file, from 1.
    pub line: u32,
}

impl Entry {
    /// Grid, block and dynamic shared memory.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for a problem that exceeds what the kernel can count.
    pub fn geometry(&self, problem: &Problem) -> Result<Geometry, Refusal> {
        (self.geometry_of)(self.name, problem)
    }

    /// The least work of a launch.
    #[must_use]
    pub fn cost(&self, problem: &Problem) -> Cost {
        (self.cost_of)(problem)
    }
}

/// A kernel with an entry in the table.
pub trait Registered: cuda_std::host::Kernel {
    /// The entry.
    const ENTRY: Entry;
}

/// A family of kernels, in the order of the ladder.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// The family's name, which its folders share.
    pub name: &'static str,
    /// What the family computes, in one line.
    pub computes: &'static str,
    /// All its entry points.
    pub kernels: &'static [Entry],
}

impl Family {
    /// Whether all its kernels measure the device. Such a family computes nothing that could be
    /// ported or compared.
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

/// An entry point's name without its family and its type.
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

/// `text` without `prefix`, with which it must begin.
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
