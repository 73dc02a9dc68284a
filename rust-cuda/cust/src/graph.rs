//! Graphs: work that is described once and launched as a whole.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, ToResult};
use crate::function::{BlockSize, GridSize};
use crate::stream::Stream;
use cuda_loader::sys::{self, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUresult};
use cust_core::DeviceCopy;
use std::ffi::{CString, c_uint, c_void};
use std::path::Path;

bitflags::bitflags! {
    /// There are no flags yet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct GraphCreationFlags: u32 {}
}

/// A kernel launch for a graph; [`kernel_invocation!`](crate::kernel_invocation!) makes one.
#[derive(Debug)]
pub struct KernelInvocation {
    /// Threads of a block.
    pub block_dim: BlockSize,
    /// Blocks of the grid.
    pub grid_dim: GridSize,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_mem_bytes: u32,
    function: CUfunction,
    parameters: Vec<Parameter>,
}

/// A copy of a parameter's bytes, aligned for every parameter type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Parameter(Box<[u128]>);

impl Parameter {
    /// Copies a value.
    #[must_use]
    pub fn new<T: DeviceCopy>(value: &T) -> Self {
        const {
            assert!(
                align_of::<T>() <= align_of::<u128>(),
                "aligned more than parameters are"
            )
        };
        let mut bytes = vec![0_u128; size_of::<T>().div_ceil(size_of::<u128>())];
        // SAFETY: the bytes have the size and the alignment of a `T`.
        unsafe { bytes.as_mut_ptr().cast::<T>().write(*value) };
        Self(bytes.into_boxed_slice())
    }
}

impl KernelInvocation {
    /// A launch of this kernel.
    ///
    /// # Safety
    ///
    /// The rules of [`launch!`](crate::launch!) hold for every run of a graph with this launch; the
    /// kernel's module stays loaded until the last run has ended.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn new(
        block_dim: BlockSize,
        grid_dim: GridSize,
        shared_mem_bytes: u32,
        function: CUfunction,
        parameters: Vec<Parameter>,
    ) -> Self {
        Self {
            block_dim,
            grid_dim,
            shared_mem_bytes,
            function,
            parameters,
        }
    }
}

/// A launch for [`Graph::add_kernel_node`]:
/// `kernel_invocation!(kernel<<<grid, block, shared>>>(parameters…))`.
///
/// The kernel is a [`Function`](crate::function::Function). The macro copies the parameters.
///
/// # Safety
///
/// The call is unsafe like [`launch!`](crate::launch!): its rules hold for every run of a graph
/// with this launch.
#[macro_export]
macro_rules! kernel_invocation {
    ($function:ident <<<$grid:expr, $block:expr, $shared:tt>>>( $($arg:expr),* $(,)? )) => {
        $crate::graph::KernelInvocation::new(
            $crate::function::BlockSize::from($block),
            $crate::function::GridSize::from($grid),
            $shared,
            $function.to_raw(),
            ::std::vec![$($crate::graph::Parameter::new(&$arg)),*],
        )
    };
}

/// A node: a piece of work in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct GraphNode {
    raw: CUgraphNode,
}

impl GraphNode {
    /// The node with this handle.
    #[must_use]
    pub fn from_raw(raw: CUgraphNode) -> Self {
        Self { raw }
    }

    /// The driver's handle.
    #[must_use]
    pub fn to_raw(self) -> CUgraphNode {
        self.raw
    }
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GraphNodeType {
    /// A launch.
    KernelInvocation,
    /// A copy.
    Memcpy,
    /// A fill.
    Memset,
    /// A call of a host function.
    HostExecute,
    /// Another graph.
    ChildGraph,
    /// No work: a node for others to wait for.
    Empty,
    /// Waits for an event.
    WaitEvent,
    /// Records an event.
    EventRecord,
    /// Another kind, with the driver's number.
    Other(u32),
}

impl GraphNodeType {
    /// The kind with this number.
    #[must_use]
    pub fn from_raw(raw: c_uint) -> Self {
        match raw {
            0 => Self::KernelInvocation,
            1 => Self::Memcpy,
            2 => Self::Memset,
            3 => Self::HostExecute,
            4 => Self::ChildGraph,
            5 => Self::Empty,
            6 => Self::WaitEvent,
            7 => Self::EventRecord,
            other => Self::Other(other),
        }
    }
}

/// A description of work, not yet ready to run.
#[derive(Debug)]
pub struct Graph {
    raw: CUgraph,
}

impl Graph {
    /// An empty graph.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new(flags: GraphCreationFlags) -> CudaResult<Self> {
        let mut raw = CUgraph::NULL;
        // SAFETY: the pointer is valid for one handle.
        unsafe { sys::cuGraphCreate(&raw mut raw, flags.bits()) }.to_result()?;
        Ok(Self { raw })
    }

    /// The graph with this handle; the result takes ownership.
    ///
    /// # Safety
    ///
    /// The handle belongs to a graph, or is null for none, and no other code destroys it.
    #[must_use]
    pub unsafe fn from_raw(raw: CUgraph) -> Self {
        Self { raw }
    }

    /// Returns the driver's handle; the caller takes ownership of the graph.
    #[must_use]
    pub fn into_raw(self) -> CUgraph {
        std::mem::ManuallyDrop::new(self).raw
    }

    /// The number of nodes.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn num_nodes(&mut self) -> CudaResult<usize> {
        let mut count = 0;
        // SAFETY: with null the call only writes the number, for which the pointer is valid.
        unsafe { sys::cuGraphGetNodes(self.raw, std::ptr::null_mut(), &raw mut count) }
            .to_result()?;
        Ok(count)
    }

    /// The nodes.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn nodes(&mut self) -> CudaResult<Vec<GraphNode>> {
        let mut count = self.num_nodes()?;
        // The driver reports an error if there is space for no nodes.
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut nodes = vec![CUgraphNode::NULL; count];
        // SAFETY: there is space for `count` of them.
        unsafe { sys::cuGraphGetNodes(self.raw, nodes.as_mut_ptr(), &raw mut count) }
            .to_result()?;
        nodes.truncate(count);
        Ok(nodes.into_iter().map(GraphNode::from_raw).collect())
    }

    /// Whether this is a node of the graph.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn is_valid_node(&mut self, node: GraphNode) -> CudaResult<bool> {
        Ok(self.nodes()?.contains(&node))
    }

    fn require(&mut self, nodes: &[GraphNode]) -> CudaResult<()> {
        let all = self.nodes()?;
        if nodes.iter().all(|node| all.contains(node)) {
            Ok(())
        } else {
            Err(CudaError::InvalidHandle)
        }
    }

    /// Adds a kernel launch, which waits for these nodes.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidHandle`] if one of them is not in this graph; other errors of the
    /// driver.
    pub fn add_kernel_node(
        &mut self,
        invocation: KernelInvocation,
        dependencies: impl AsRef<[GraphNode]>,
    ) -> CudaResult<GraphNode> {
        let dependencies = dependencies.as_ref();
        self.require(dependencies)?;
        let mut parameters: Vec<*mut c_void> = invocation
            .parameters
            .iter()
            .map(|parameter| parameter.0.as_ptr().cast_mut().cast())
            .collect();
        let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
            func: invocation.function,
            gridDimX: invocation.grid_dim.x,
            gridDimY: invocation.grid_dim.y,
            gridDimZ: invocation.grid_dim.z,
            blockDimX: invocation.block_dim.x,
            blockDimY: invocation.block_dim.y,
            blockDimZ: invocation.block_dim.z,
            sharedMemBytes: invocation.shared_mem_bytes,
            kernelParams: parameters.as_mut_ptr(),
            extra: std::ptr::null_mut(),
        };
        let mut node = CUgraphNode::NULL;
        // SAFETY: the nodes belong to this graph, and a `GraphNode` is its handle. The driver
        // copies the parameters; whoever made the invocation promised that they suit the kernel.
        unsafe {
            sys::cuGraphAddKernelNode(
                &raw mut node,
                self.raw,
                dependencies.as_ptr().cast(),
                dependencies.len(),
                &raw const parameters,
            )
        }
        .to_result()?;
        Ok(GraphNode::from_raw(node))
    }

    /// The number of edges: pairs of nodes in which one waits for the other.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn num_edges(&mut self) -> CudaResult<usize> {
        let null = std::ptr::null_mut();
        let mut count = 0;
        // SAFETY: with null the call only writes the number, for which the pointer is valid.
        unsafe { sys::cuGraphGetEdges(self.raw, null, null, &raw mut count) }.to_result()?;
        Ok(count)
    }

    /// The edges: pairs of nodes in which the second waits for the first.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn edges(&mut self) -> CudaResult<Vec<(GraphNode, GraphNode)>> {
        let mut count = self.num_edges()?;
        // As in `nodes`.
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut from = vec![CUgraphNode::NULL; count];
        let mut to = from.clone();
        // SAFETY: there is space for `count` of them.
        unsafe {
            sys::cuGraphGetEdges(self.raw, from.as_mut_ptr(), to.as_mut_ptr(), &raw mut count)
        }
        .to_result()?;
        let pairs = from.into_iter().zip(to).take(count);
        Ok(pairs
            .map(|(from, to)| (GraphNode::from_raw(from), GraphNode::from_raw(to)))
            .collect())
    }

    /// The kind of a node.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidHandle`] for a node of another graph; other errors of the driver.
    pub fn node_type(&mut self, node: GraphNode) -> CudaResult<GraphNodeType> {
        self.require(&[node])?;
        let mut kind = 0;
        // SAFETY: the pointer is valid for one number, and the node is a node of this graph.
        unsafe { sys::cuGraphNodeGetType(node.raw, &raw mut kind) }.to_result()?;
        Ok(GraphNodeType::from_raw(kind))
    }

    /// Writes the graph to a file in the language of Graphviz.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn dump_debug_dotfile<P: AsRef<Path>>(&mut self, path: P) -> CudaResult<()> {
        let path = path.as_ref().as_os_str().as_encoded_bytes();
        let path = CString::new(path).map_err(|_| CudaError::FileNotFound)?;
        // SAFETY: the path ends in a zero byte.
        unsafe { sys::cuGraphDebugDotPrint(self.raw, path.as_ptr(), 0) }.to_result()
    }

    /// Makes a copy of the graph that is ready to run in the current context.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn instantiate(&self) -> CudaResult<GraphExec> {
        let home = Home::current()?;
        let mut raw = CUgraphExec::NULL;
        // SAFETY: the pointer is valid for one handle.
        unsafe { sys::cuGraphInstantiateWithFlags(&raw mut raw, self.raw, 0) }.to_result()?;
        Ok(GraphExec { raw, home })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.raw != CUgraph::NULL {
            // SAFETY: this value owns the graph. A failure means that the driver is shutting down.
            let _: CUresult = unsafe { sys::cuGraphDestroy(self.raw) };
        }
    }
}

impl Stream {
    /// Ends the capture, and returns the work recorded since [`Stream::begin_capture`].
    ///
    /// # Errors
    ///
    /// The error that the driver reports, also if it could not record some work.
    pub fn end_capture(&self) -> CudaResult<Graph> {
        let mut graph = CUgraph::NULL;
        // SAFETY: the pointer is valid for one handle, the stream is alive.
        unsafe { sys::cuStreamEndCapture(self.as_inner(), &raw mut graph) }.to_result()?;
        // SAFETY: the driver has just made the graph for the caller.
        Ok(unsafe { Graph::from_raw(graph) })
    }
}

/// A graph that is ready to run.
#[derive(Debug)]
pub struct GraphExec {
    raw: CUgraphExec,
    home: Home,
}

impl GraphExec {
    /// Queues all its work.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Safety
    ///
    /// All memory, modules and host memory that the work uses exist until it has ended. Meanwhile
    /// nothing else uses memory that it writes.
    pub unsafe fn launch(&self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: both are alive; the rest is the caller's promise.
        unsafe { sys::cuGraphLaunch(self.raw, stream.as_inner()) }.to_result()
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        let Ok(_entered) = self.home.enter() else {
            return;
        };
        // SAFETY: this value owns the graph; the driver still finishes queued work. A failure means
        // that the driver is shutting down.
        let _: CUresult = unsafe { sys::cuGraphExecDestroy(self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_copies() {
        let mut value = [1_u32, 2, 3, 4, 5];
        let copy = Parameter::new(&value);
        value[0] = 9;
        // SAFETY: the copy has these bytes.
        let copied = unsafe { copy.0.as_ptr().cast::<[u32; 5]>().read() };
        assert_eq!(copied, [1, 2, 3, 4, 5]);
        assert_eq!(value[0], 9);
    }
}
