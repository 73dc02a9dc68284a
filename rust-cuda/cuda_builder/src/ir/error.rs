//! What can be wrong with a module.

/// What is wrong with a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IrError {
    /// The text is not what `llvm-link -S` prints.
    #[error(
        "cannot read the LLVM IR: {what} in `{line}`; cuda_builder reads the IR that LLVM {known} prints"
    )]
    Syntax {
        /// What was not understood.
        what: &'static str,
        /// The line, shortened.
        line: String,
        /// The LLVM release the reader was written for.
        known: u32,
    },
    /// Nothing in the crate is exported.
    #[error(
        "the crate has no kernel: nothing in it or in its dependencies is marked `#[kernel]` or `#[externally_visible]`"
    )]
    NothingExported,
    /// A symbol is used and nowhere defined.
    #[error(
        "undefined symbol{}: {}; device code cannot link against host libraries: define {} in Rust, or name what the driver's linker supplies with `CudaBuilder::allow_undefined`",
        if .0.len() == 1 { "" } else { "s" },
        .0.join(", "),
        if .0.len() == 1 { "it" } else { "them" }
    )]
    Undefined(Vec<String>),
    /// `alloc` is used without a global allocator.
    #[error(
        "the crate allocates memory (`alloc`) but no crate it depends on defines a `#[global_allocator]`; depend on cuda_std, which has one"
    )]
    NoGlobalAllocator,
    /// A static lies in a section that means nothing on the device.
    #[error(
        "static `{name}` has link_section \"{section}\", which is not the section of an address space; use \".shared\", \".constant\" or \".global\", with \".visible\" appended if the host must access it"
    )]
    UnknownSection {
        /// The static.
        name: String,
        /// Its section.
        section: String,
    },
    /// The number of a static's address space is none of CUDA's memories.
    #[error(
        "static `{name}` has address space {number}, in which a static cannot be; 1 is global memory, 3 shared and 4 constant memory"
    )]
    UnknownAddressSpace {
        /// The static.
        name: String,
        /// The number.
        number: u32,
    },
    /// Launch bounds of something that is not a kernel, or that cannot be read.
    #[error(
        "static `{name}` is in section \".launch_bounds\", but {problem}; leave that section to `#[launch_bounds]` on a kernel"
    )]
    LaunchBounds {
        /// The static.
        name: String,
        /// What is wrong with it, as words that follow "but".
        problem: &'static str,
    },
    /// What `#[grid_constant]` left does not belong to a kernel, or cannot be read.
    #[error(
        "static `{name}` is in section \".grid_constant\", but {problem}; leave that section to `#[grid_constant]` on a kernel's parameter"
    )]
    GridConstant {
        /// The static.
        name: String,
        /// What is wrong with it, as words that follow "but".
        problem: &'static str,
    },
    /// A kernel writes to constant memory.
    #[error(
        "`{function}` writes to `{name}`, which is in constant memory: only the host can, before a launch; use global memory for what kernels write"
    )]
    StoreToConstant {
        /// The function.
        function: String,
        /// The static.
        name: String,
    },
    /// An exported name that PTX cannot spell.
    #[error(
        "`{name}` is exported, but is not a PTX identifier: use letters, digits, `_` and `$`, not starting with a digit"
    )]
    InvalidExportName {
        /// The name.
        name: String,
    },
    /// A static holds the address of shared memory.
    #[error(
        "static `{holder}` is initialised with the address of `{shared}`, which is in shared memory and has a different address in each block; take the address inside the kernel"
    )]
    SharedInInitialiser {
        /// The static that holds the address.
        holder: String,
        /// The static in shared memory.
        shared: String,
    },
}

impl IrError {
    pub(super) fn syntax(what: &'static str, line: &str) -> Self {
        Self::Syntax {
            what,
            line: line.chars().take(200).collect(),
            known: 22,
        }
    }
}
