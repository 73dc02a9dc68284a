//! Tests operations on host data where the device is the host: they read the caller's memory in
//! place, and allocate only their results.

use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS};
use halo_gpu::{Device, Field3, Grid3, Shape3, reduction};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The system's allocator, which counts.
struct Counting;

/// Bytes in use, and the most there have been.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn taken(bytes: usize) {
    let in_use = IN_USE.fetch_add(bytes, SeqCst) + bytes;
    MOST.fetch_max(in_use, SeqCst);
}

// SAFETY: every call is passed on to the system's allocator. A reallocation allocates, copies and
// frees, as the default of `realloc` does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What threads, tiles and partial sums may take: less than a copy of the input.
const SLACK: usize = 4 << 20;

/// Fails if `work` has more memory in use than its result needs.
fn allocates<R>(what: &str, result_bytes: usize, mut work: impl FnMut() -> R) {
    // The pool's threads, and the memory that they keep.
    drop(work());
    let before = IN_USE.load(SeqCst);
    MOST.store(before, SeqCst);
    let result = work();
    let more = MOST.load(SeqCst) - before;
    drop(result);
    assert!(
        more <= result_bytes + SLACK,
        "{what} takes {more} bytes to give back {result_bytes}"
    );
}

fn reductions_read_the_callers_memory() {
    let device = Device::cpu();
    let values: Vec<f32> = (0..1 << 21).map(|i| (i % 1009) as f32).collect();
    allocates("sum_of", 0, || reduction::sum_of(&device, &values).unwrap());
    allocates("min_of", 0, || reduction::min_of(&device, &values).unwrap());
    allocates("argmin_of", 0, || {
        reduction::argmin_of(&device, &values).unwrap()
    });
    allocates("mean_of", 0, || {
        reduction::mean_of(&device, &values).unwrap()
    });
    allocates("norm_of", 0, || {
        reduction::norm_of(&device, &values).unwrap()
    });
    allocates("dot_of", 0, || {
        reduction::dot_of(&device, &values, &values).unwrap()
    });
}

fn stencils_allocate_their_result_alone() {
    let (device, n) = (Device::cpu(), 1 << 21);
    let line: Vec<f32> = (0..n).map(|i| (i % 1009) as f32).collect();
    let stencil = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS).unwrap();
    allocates("Stencil1d::apply_of", 4 * n, || {
        stencil.apply_of(&device, &line).unwrap()
    });
    let smooth = Stencil1d::symmetric(n, 0.5_f32, &[0.25]).unwrap();
    allocates("Stencil1d::apply_of, symmetric", 4 * n, || {
        smooth.apply_of(&device, &line).unwrap()
    });
    let mut inner = vec![0.0; smooth.inner_len()];
    allocates("Stencil1d::apply_of_into", 0, || {
        smooth.apply_of_into(&device, &line, &mut inner).unwrap()
    });
}

fn derivatives_allocate_their_results_alone() {
    let device = Device::cpu();
    let shape = Shape3::cube(128);
    let bytes = 4 * shape.points().unwrap();
    let field = Field3::from_fn(shape, |i, j, k| (i * j % 31 + k) as f32).unwrap();
    let grid = Grid3::new(shape, [1.0; 3]).unwrap();
    let grid = FiniteDifferences3d::new(&grid).unwrap();
    let mut laplacian = Field3::filled(shape, 0.0).unwrap();
    allocates("laplacian_of_into", 0, || {
        grid.laplacian_of_into(&device, &field, &mut laplacian)
            .unwrap()
    });
    allocates("gradient_of", 3 * bytes, || {
        grid.gradient_of(&device, &field).unwrap()
    });
    allocates("laplacian_of", bytes, || {
        grid.laplacian_of(&device, &field).unwrap()
    });
}

// One test only: allocations of others at the same time would be counted.
#[test]
fn operations_on_the_host_allocate_their_results_alone() {
    reductions_read_the_callers_memory();
    stencils_allocate_their_result_alone();
    derivatives_allocate_their_results_alone();
}
