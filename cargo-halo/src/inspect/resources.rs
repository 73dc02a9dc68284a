//! The multiprocessor resources that a kernel uses, from `ptxas --verbose`, and its occupancy.

use std::collections::BTreeMap;

use serde::Serialize;

/// Registers and memory of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Static shared memory per block.
    pub shared_bytes: u32,
    /// Local memory per thread for arrays of the source that registers cannot hold.
    pub stack_bytes: u32,
    /// Bytes that a thread stores because registers are missing, over all such instructions, and
    /// loads again.
    pub spill_bytes: u32,
}

/// The resources of each kernel in ptxas's output, by the kernel's name.
pub fn parse(said: &str) -> BTreeMap<String, Resources> {
    let mut kernels = BTreeMap::new();
    let mut current = None;
    // A kernel's own properties follow its name. Those of functions that it calls are listed under
    // their names, and are part of its stack.
    let mut own = false;
    for line in said.lines() {
        if let Some(name) = between(line, "Compiling entry function '", "'") {
            kernels.insert(name.to_owned(), Resources::default());
            current = Some(name);
            own = false;
            continue;
        }
        let Some(kernel) = current.and_then(|name| kernels.get_mut(name)) else {
            continue;
        };
        if let Some((_, name)) = line.split_once("Function properties for ") {
            own = Some(name.trim()) == current;
        } else if line.contains("bytes stack frame") && own {
            kernel.stack_bytes = number_before(line, " bytes stack frame");
            kernel.spill_bytes = number_before(line, " bytes spill stores")
                + number_before(line, " bytes spill loads");
        } else if line.contains("Used ") {
            kernel.registers = number_before(line, " registers");
            kernel.shared_bytes = number_before(line, " bytes smem");
        }
    }
    kernels
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    rest.split_once(after).map(|(inside, _)| inside)
}

/// The number in front of these words; 0 where they are missing.
fn number_before(line: &str, words: &str) -> u32 {
    line.split_once(words)
        .and_then(|(before, _)| before.rsplit(|c: char| !c.is_ascii_digit()).next())
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

/// The resources of a multiprocessor, from the table of technical specifications in the CUDA C++
/// Programming Guide. Common to all: 32 threads a warp; 65 536 registers in four equal parts,
/// allocated in pieces of 256 to a warp, which stays in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    pub arch: &'static str,
    /// The most resident warps.
    warps: u32,
    /// The most resident blocks.
    blocks: u32,
    /// Shared memory, allocated in pieces of `shared_unit` to a block.
    shared_bytes: u32,
    shared_unit: u32,
    /// Shared memory that the system reserves in each block.
    shared_reserved: u32,
}

const KIB: u32 = 1024;

/// The GPU architectures that occupancy is known for.
pub const MULTIPROCESSORS: [Multiprocessor; 6] = [
    multiprocessor("sm_75", 32, 16, 64 * KIB, 256, 0),
    multiprocessor("sm_80", 64, 32, 164 * KIB, 128, KIB),
    multiprocessor("sm_86", 48, 16, 100 * KIB, 128, KIB),
    multiprocessor("sm_89", 48, 24, 100 * KIB, 128, KIB),
    multiprocessor("sm_90", 64, 32, 228 * KIB, 128, KIB),
    multiprocessor("sm_100", 64, 32, 228 * KIB, 128, KIB),
];

const fn multiprocessor(
    arch: &'static str,
    warps: u32,
    blocks: u32,
    shared_bytes: u32,
    shared_unit: u32,
    shared_reserved: u32,
) -> Multiprocessor {
    Multiprocessor {
        arch,
        warps,
        blocks,
        shared_bytes,
        shared_unit,
        shared_reserved,
    }
}

/// The parameters of a launch that occupancy depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    pub threads: u32,
    pub dynamic_shared_bytes: u32,
}

/// The occupancy of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// Blocks resident at a time; 0 where not even one fits.
    pub blocks: u32,
    /// Their warps divided by the most possible.
    pub fraction: f64,
    /// The resource that prevents one more block.
    pub limit: &'static str,
}

impl Multiprocessor {
    /// The multiprocessor of this architecture.
    pub fn of(arch: &str) -> Option<Self> {
        MULTIPROCESSORS.into_iter().find(|found| found.arch == arch)
    }

    /// Occupancy by warps, blocks, registers and shared memory:
    ///
    /// ```text
    /// warps  = ceil(threads / 32)                                     of a block
    /// blocks = min( max warps / warps,
    ///               max blocks,
    ///               4 * floor(16384 / roundup(32 * registers, 256)) / warps,
    ///               shared / roundup(static + dynamic + reserved, unit) )
    /// occupancy = blocks * warps / max warps
    /// ```
    ///
    /// every quotient rounded down.
    pub fn occupancy(&self, resources: &Resources, block: Block) -> Occupancy {
        let warps = block.threads.div_ceil(32).max(1);
        let registers = (32 * resources.registers.max(1)).next_multiple_of(256);
        let shared = (resources.shared_bytes + block.dynamic_shared_bytes + self.shared_reserved)
            .next_multiple_of(self.shared_unit);
        let limits = [
            ("warps", self.warps / warps),
            ("blocks", self.blocks),
            ("registers", 4 * (16384 / registers) / warps),
            (
                "shared memory",
                self.shared_bytes.checked_div(shared).unwrap_or(u32::MAX),
            ),
        ];
        // The first of equal limits.
        let (limit, blocks) = limits
            .into_iter()
            .min_by_key(|&(_, blocks)| blocks)
            .unwrap_or(("warps", 0));
        Occupancy {
            blocks,
            fraction: f64::from(blocks * warps) / f64::from(self.warps),
            limit,
        }
    }
}

/// The bound on the block of each kernel in this PTX, `.maxntid` or `.reqntid`: the product of its
/// extents.
pub fn launch_bounds(ptx: &str) -> BTreeMap<String, u32> {
    let mut bounds = BTreeMap::new();
    let mut current = None;
    for line in ptx.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once(".entry ") {
            current = rest.split('(').next().map(str::trim);
        } else if line.starts_with('{') {
            current = None;
        } else if let (Some(name), Some(extents)) = (
            current,
            line.strip_prefix(".maxntid")
                .or_else(|| line.strip_prefix(".reqntid")),
        ) {
            let threads = extents
                .split(',')
                .filter_map(|extent| extent.trim().parse::<u32>().ok())
                .fold(1_u32, u32::saturating_mul);
            bounds.insert(name.to_owned(), threads);
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ptxas_says_is_read() {
        let said = "\
ptxas info    : 0 bytes gmem, 64 bytes cmem[3]
ptxas info    : Compiling entry function 'heat2d_a' for 'sm_90'
ptxas info    : Function properties for heat2d_a
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Function properties for helper
    640 bytes stack frame, 100 bytes spill stores, 100 bytes spill loads
ptxas info    : Used 26 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 14.072 ms
ptxas info    : Compiling entry function 'heat2d_b' for 'sm_90'
ptxas info    : Function properties for heat2d_b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
";
        let kernels = parse(said);
        assert_eq!(kernels.len(), 2);
        assert_eq!(
            kernels["heat2d_a"],
            Resources {
                registers: 26,
                shared_bytes: 1024,
                stack_bytes: 8,
                spill_bytes: 28,
            }
        );
        assert_eq!(
            kernels["heat2d_b"],
            Resources {
                registers: 8,
                ..Resources::default()
            }
        );
    }

    fn occupancy(
        arch: &str,
        registers: u32,
        shared: u32,
        threads: u32,
    ) -> (u32, f64, &'static str) {
        let found = Multiprocessor::of(arch).unwrap().occupancy(
            &Resources {
                registers,
                shared_bytes: shared,
                ..Resources::default()
            },
            Block {
                threads,
                dynamic_shared_bytes: 0,
            },
        );
        (found.blocks, found.fraction, found.limit)
    }

    #[test]
    fn occupancy_has_one_limit_at_a_time() {
        assert_eq!(occupancy("sm_90", 32, 0, 256), (8, 1.0, "warps"));
        assert_eq!(occupancy("sm_90", 16, 0, 32), (32, 0.5, "blocks"));
        // 40 registers are 1280 per warp: 12 warps in each of four parts.
        assert_eq!(occupancy("sm_90", 40, 0, 256), (6, 0.75, "registers"));
        // 255 registers are 8192 per warp: two in each part.
        assert_eq!(occupancy("sm_90", 255, 0, 1024), (0, 0.0, "registers"));
        // 57 KiB and 1 KiB of the system: three fit in 228.
        assert_eq!(
            occupancy("sm_90", 16, 57 * KIB, 256),
            (3, 0.375, "shared memory")
        );
        // Where the system reserves none, 32 KiB fit twice into 64.
        assert_eq!(
            occupancy("sm_75", 16, 32 * KIB, 128),
            (2, 0.25, "shared memory")
        );
        // 96 threads are three warps, each in one part.
        assert_eq!(occupancy("sm_86", 16, 0, 96), (16, 1.0, "warps"));
        assert_eq!(occupancy("sm_86", 16, 0, 65), (16, 1.0, "warps"));
        assert_eq!(Multiprocessor::of("sm_20"), None);
    }

    #[test]
    fn launch_bounds_belong_to_their_kernel() {
        let ptx = "\
.visible .entry nbody_a(
	.param .u64 .ptr nbody_a_param_0
)
{
	.reg .b32 %r<2>;
	ret;
}
.visible .entry nbody_b(
	.param .u64 .ptr nbody_b_param_0
)
.maxntid 32, 8, 1
.minnctapersm 2
{
	ret;
}
.entry nbody_c()
.reqntid 64
{
";
        let bounds = launch_bounds(ptx);
        assert_eq!(bounds.get("nbody_a"), None);
        assert_eq!(bounds["nbody_b"], 256);
        assert_eq!(bounds["nbody_c"], 64);
    }
}
