//! Kernels that call the functions of `cuda_std`, in emulated launches: their
//! results, and the diagnoses of wrong calls.
#![allow(
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    reason = "test kernels"
)]

use core::sync::atomic::Ordering;

use cuda_emulator::{
    Addressing, DeviceMemory, Diagnosis, LaunchConfig, Options, Report, TextureDescriptor,
    TextureShape, Verify, launch,
};
use cuda_std::atomic::{AtomicF32, AtomicU32, BlockAtomicU64, SystemAtomicF64};
use cuda_std::bulk_copy::{self, Barrier};
use cuda_std::host::{In, Kernel, Out, ParamPack, Symbol};
use cuda_std::ptr::AddressSpace;
use cuda_std::warp::{self, WarpReductionOp};
use cuda_std::{
    address_space, async_copy, bf16, cache, cluster, externally_visible, f16, gpu_only, kernel,
    matrix, mem, misc, shared, shared_array, texture, thread,
};

// --- harness ---------------------------------------------------------------------

/// Launches a kernel in the emulator.
fn try_run<K>(
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: usize,
    memory: &DeviceMemory,
    args: &K::Args<'_>,
) -> Result<Report, Diagnosis>
where
    K: Kernel,
    for<'a> K::Args<'a>: Sync,
{
    let config = LaunchConfig {
        kernel: K::NAME,
        grid,
        block,
        dynamic_shared_bytes,
    };
    let thread = || unsafe { K::run_thread(args) };
    unsafe { launch(&config, &Options::default(), memory, &thread) }
}

/// Launches one block of threads along x; panics on a diagnosis.
fn run<K>(threads: u32, args: &K::Args<'_>) -> Report
where
    K: Kernel,
    for<'a> K::Args<'a>: Sync,
{
    let memory = DeviceMemory::new();
    try_run::<K>([1, 1, 1], [threads, 1, 1], 0, &memory, args)
        .unwrap_or_else(|diagnosis| panic!("{diagnosis}"))
}

fn input<T>(data: &[T]) -> In<'_, T> {
    unsafe { In::from_raw(data.as_ptr().expose_provenance() as u64, data.len()) }
}

fn output<T>(data: &mut [T]) -> Out<'_, T> {
    unsafe { Out::from_raw(data.as_mut_ptr().expose_provenance() as u64, data.len()) }
}

/// Runs a kernel on one warp; returns the value it writes for each lane.
fn lanes<K, T: Copy + Default>(start: impl Fn(usize) -> T) -> [T; 32]
where
    K: for<'a> Kernel<Args<'a> = (Out<'a, T>,)>,
{
    let mut data = core::array::from_fn(start);
    run::<K>(32, &(output(&mut data),));
    data
}

// --- places ----------------------------------------------------------------------

#[kernel]
pub unsafe fn places(out: *mut [u32; 8]) {
    let [i, j, k] = thread::index_3d().to_array();
    let flat = thread::index() as usize;
    let block = thread::block_dim();
    let row = [
        i,
        j,
        k,
        thread::index_1d(),
        thread::index_2d().y,
        u32::from(thread::first()),
        thread::grid_dim().element_product() * block.element_product(),
        thread::warp_size() * 1000 + warp::lane_id(),
    ];
    unsafe { *out.add(flat) = row };
}

#[test]
fn every_thread_has_its_place() {
    let (grid, block) = ([3, 2, 2], [5, 2, 3]);
    let threads = 12 * 30;
    let mut out = vec![[0; 8]; threads];
    try_run::<places>(grid, block, 0, &DeviceMemory::new(), &(output(&mut out),)).unwrap();

    let mut seen = std::collections::HashSet::new();
    for (flat, row) in out.iter().enumerate() {
        assert!(
            seen.insert([row[0], row[1], row[2]]),
            "two threads at {row:?}"
        );
        assert!(row[0] < 15 && row[1] < 4 && row[2] < 6, "{row:?}");
        assert_eq!((row[3], row[4]), (row[0], row[1]));
        assert_eq!(row[5] == 1, flat == 0, "only one is first: {row:?}");
        assert_eq!(row[6] as usize, threads);
        assert_eq!(row[7], 32_000 + (flat % 30) as u32);
    }
    // Blocks are numbered x fastest, and so are threads in a block.
    assert_eq!(out[1][..3], [1, 0, 0]);
    assert_eq!(out[5][..3], [0, 1, 0]);
    assert_eq!(out[30][..3], [5, 0, 0]);
    assert_eq!(out[90][..3], [0, 2, 0]);
    assert_eq!(out[180][..3], [0, 0, 3]);
}

#[test]
fn the_place_of_a_thread_needs_a_launch() {
    let panic = std::panic::catch_unwind(thread::thread_idx_x).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("outside a kernel launch"), "{message}");
}

// --- barriers --------------------------------------------------------------------

#[kernel]
pub unsafe fn barriers(out: *mut [u32; 3]) {
    let i = thread::thread_idx_x();
    let counted = thread::sync_threads_count(i % 3);
    let all = thread::sync_threads_and(i + 1);
    let any = thread::sync_threads_or(u32::from(i == 40));
    unsafe { *out.add(i as usize) = [counted, all, any] };
}

#[test]
fn barriers_count_and_combine() {
    let mut out = [[9; 3]; 48];
    let report = run::<barriers>(48, &(output(&mut out),));
    assert_eq!(out, [[32, 1, 1]; 48]);
    assert_eq!(report.barriers, 3);
}

/// The line of the barrier in [`diverging`].
static LINE: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

#[kernel]
pub unsafe fn diverging(out: *mut u32) {
    if thread::thread_idx_x() < 7 {
        LINE.store(line!() + 1, Ordering::Relaxed);
        thread::sync_threads();
        unsafe { *out = 1 };
    }
}

#[test]
fn a_diverging_barrier_names_the_line_of_the_kernel() {
    let mut out = [0];
    let memory = DeviceMemory::new();
    let diagnosis =
        try_run::<diverging>([1, 1, 1], [32, 1, 1], 0, &memory, &(output(&mut out),)).unwrap_err();
    let message = diagnosis.to_string();
    let line = LINE.load(Ordering::Relaxed);
    assert!(
        matches!(diagnosis, Diagnosis::BarrierDivergence { .. }),
        "{message}"
    );
    assert!(
        message.contains(&format!("emulated.rs:{line}")),
        "line {line}: {message}"
    );
}

// --- warps -----------------------------------------------------------------------

macro_rules! shuffles {
    ($($name:ident($value:ident: $type:ty) = $call:expr;)*) => {$(
        #[kernel]
        pub unsafe fn $name(out: *mut $type) {
            let at = unsafe { out.add(warp::lane_id() as usize) };
            let $value = unsafe { *at };
            unsafe { *at = $call };
        }
    )*};
}

const ALL: u32 = u32::MAX;

shuffles! {
    shuffle_down(value: i32) = { let (v, inside) = warp::warp_shuffle_down(ALL, value, 3, 8); if inside { v } else { -v } };
    shuffle_up(value: i32) = { let (v, inside) = warp::warp_shuffle_up(ALL, value, 3, 8); if inside { v } else { -v } };
    shuffle_xor(value: i32) = { let (v, inside) = warp::warp_shuffle_xor(ALL, value, 5, 4); if inside { v } else { -v } };
    shuffle_idx(value: i32) = { let (v, inside) = warp::warp_shuffle_idx(ALL, value, 9, 8); if inside { v } else { -v } };
    shuffle_u128(value: u128) = warp::warp_shuffle_xor(ALL, value, 1, 32).0;
    shuffle_i8(value: i8) = warp::warp_shuffle_xor(ALL, value, 1, 32).0;
    shuffle_f64(value: f64) = warp::warp_shuffle_xor(ALL, value, 1, 32).0;
    shuffle_f16(value: f16) = warp::warp_shuffle_xor(ALL, value, 1, 32).0;
    shuffle_bf16(value: bf16) = warp::warp_shuffle_xor(ALL, value, 1, 32).0;
    shuffle_bad_width(value: i32) = warp::warp_shuffle_xor(ALL, value, 1, 12).0;
}

/// Lane `i` starts with `i + 1`; a lane without a source gives its own value,
/// negated.
fn shuffled<K: for<'a> Kernel<Args<'a> = (Out<'a, i32>,)>>() -> [i32; 32] {
    lanes::<K, i32>(|i| i as i32 + 1)
}

#[test]
fn shuffles_read_the_lane_they_name_within_their_segment() {
    let own = |i: usize| i as i32 + 1;
    let of = |f: &dyn Fn(usize) -> i32| core::array::from_fn(f);
    assert_eq!(
        shuffled::<shuffle_down>(),
        of(&|i| if i % 8 < 5 { own(i + 3) } else { -own(i) })
    );
    assert_eq!(
        shuffled::<shuffle_up>(),
        of(&|i| if i % 8 >= 3 { own(i - 3) } else { -own(i) })
    );
    // Lane 9 modulo 8 of the lane's own segment.
    assert_eq!(shuffled::<shuffle_idx>(), of(&|i| own(i / 8 * 8 + 1)));
    // Xor 5 leads out of a segment of 4: a lower lane is read, a higher one is
    // not.
    assert_eq!(
        shuffled::<shuffle_xor>(),
        of(&|i| if i ^ 5 < i { own(i ^ 5) } else { -own(i) })
    );
}

#[test]
fn shuffles_carry_all_bits_of_their_type() {
    let wide = |i: usize| (i as u128) << 120 | (i as u128) << 62 | i as u128;
    assert_eq!(
        lanes::<shuffle_u128, _>(wide),
        core::array::from_fn(|i| wide(i ^ 1))
    );
    let byte = |i: usize| i as i8 - 100;
    assert_eq!(
        lanes::<shuffle_i8, _>(byte),
        core::array::from_fn(|i| byte(i ^ 1))
    );
    let float = |i: usize| -(i as f64) / 3.0;
    assert_eq!(
        lanes::<shuffle_f64, _>(float),
        core::array::from_fn(|i| float(i ^ 1))
    );
    let half = |i: usize| f16::from_f32(i as f32 / 8.0);
    assert_eq!(
        lanes::<shuffle_f16, _>(half),
        core::array::from_fn(|i| half(i ^ 1))
    );
    let brain = |i: usize| bf16::from_f32(-(i as f32));
    assert_eq!(
        lanes::<shuffle_bf16, _>(brain),
        core::array::from_fn(|i| brain(i ^ 1))
    );
}

#[test]
fn a_width_that_divides_no_warp_is_refused() {
    let mut out = [0; 32];
    let memory = DeviceMemory::new();
    let diagnosis =
        try_run::<shuffle_bad_width>([1, 1, 1], [32, 1, 1], 0, &memory, &(output(&mut out),))
            .unwrap_err();
    assert!(
        diagnosis.to_string().contains("1, 2, 4, 8, 16 or 32"),
        "{diagnosis}"
    );
}

#[kernel]
pub unsafe fn votes(out: *mut [u32; 5]) {
    let lane = warp::lane_id();
    let low = 0xffff;
    let row = unsafe {
        [
            warp::warp_vote_ballot(ALL, lane % 2 == 1),
            u32::from(warp::warp_vote_all(ALL, lane < 32)),
            u32::from(warp::warp_vote_any(ALL, lane == 40)),
            if lane < 16 {
                warp::warp_vote_ballot(low, lane > 3)
            } else {
                0
            },
            u32::from(lane >= 16 && warp::warp_vote_any(!low, lane == 31)),
        ]
    };
    unsafe { warp::sync_warp(ALL) };
    unsafe { *out.add(lane as usize) = row };
}

#[test]
fn votes_count_the_lanes_of_their_mask() {
    let mut out = [[7; 5]; 32];
    run::<votes>(32, &(output(&mut out),));
    for (lane, row) in out.iter().enumerate() {
        let (low, high) = if lane < 16 { (0xfff0, 0) } else { (0, 1) };
        assert_eq!(*row, [0xaaaa_aaaa, 1, 0, low, high], "lane {lane}");
    }
}

#[kernel]
pub unsafe fn matches(out: *mut [u32; 6]) {
    let lane = warp::lane_id();
    let row = unsafe {
        [
            warp::warp_match_any(ALL, lane % 4),
            warp::warp_match_any(ALL, i64::from(lane / 16) - 1),
            // Zeros of different sign have different bits.
            warp::warp_match_any(
                ALL,
                if lane.is_multiple_of(2) {
                    0.0_f32
                } else {
                    -0.0
                },
            ),
            warp::warp_match_any(ALL, f64::NAN),
            warp::warp_match_all(ALL, 7_i32).unwrap_or(0),
            warp::warp_match_all(ALL, u64::from(lane / 31)).unwrap_or(0),
        ]
    };
    unsafe { *out.add(lane as usize) = row };
}

#[test]
fn matches_compare_bits() {
    let mut out = [[7; 6]; 32];
    run::<matches>(32, &(output(&mut out),));
    for (lane, row) in out.iter().enumerate() {
        let quarter = 0x1111_1111 << (lane % 4);
        let half = if lane < 16 { 0xffff } else { 0xffff_0000 };
        let parity = if lane % 2 == 0 {
            0x5555_5555
        } else {
            0xaaaa_aaaa
        };
        assert_eq!(*row, [quarter, half, parity, ALL, ALL, 0], "lane {lane}");
    }
}

#[kernel]
pub unsafe fn reductions(out: *mut [i64; 7]) {
    let lane = warp::lane_id();
    let signed = lane as i32 - 10;
    let row = unsafe {
        [
            warp::warp_reduce(ALL, signed, WarpReductionOp::Add).into(),
            warp::warp_reduce(ALL, signed, WarpReductionOp::Min).into(),
            // The same bits, unsigned: the greatest is that of -1.
            warp::warp_reduce(ALL, signed as u32, WarpReductionOp::Max).into(),
            warp::warp_reduce(ALL, lane | 0x100, WarpReductionOp::And).into(),
            warp::warp_reduce(ALL, lane, WarpReductionOp::Or).into(),
            warp::warp_reduce(ALL, lane, WarpReductionOp::Xor).into(),
            if lane.is_multiple_of(2) {
                warp::warp_reduce(0x5555_5555, lane, WarpReductionOp::Max).into()
            } else {
                -1
            },
        ]
    };
    unsafe { *out.add(lane as usize) = row };
}

#[test]
fn reductions_combine_the_lanes_of_their_mask() {
    let mut out = [[0; 7]; 32];
    run::<reductions>(32, &(output(&mut out),));
    for (lane, row) in out.iter().enumerate() {
        let last = if lane % 2 == 0 { 30 } else { -1 };
        assert_eq!(
            *row,
            [176, -10, i64::from(u32::MAX), 0x100, 31, 0, last],
            "lane {lane}"
        );
    }
}

#[kernel]
pub unsafe fn active(out: *mut u32) {
    let lane = warp::lane_id();
    if lane < 5 {
        unsafe { *out.add(lane as usize) = warp::activemask() };
    }
}

#[test]
fn the_active_mask_names_the_lanes_that_are_here() {
    let mut out = [0; 5];
    run::<active>(32, &(output(&mut out),));
    assert_eq!(out, [0b11111; 5]);
}

/// The line of the shuffle in [`left_out`].
static SHUFFLE_LINE: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

#[kernel]
pub unsafe fn left_out(out: *mut f32) {
    SHUFFLE_LINE.store(line!() + 1, Ordering::Relaxed);
    let (value, _) = unsafe { warp::warp_shuffle_xor(0xf, 1.0, 1, 32) };
    unsafe { *out.add(warp::lane_id() as usize) = value };
}

#[test]
fn a_mask_that_leaves_out_its_caller_names_the_line_of_the_kernel() {
    let mut out = [0.0; 32];
    let memory = DeviceMemory::new();
    let diagnosis =
        try_run::<left_out>([1, 1, 1], [32, 1, 1], 0, &memory, &(output(&mut out),)).unwrap_err();
    let message = diagnosis.to_string();
    let line = SHUFFLE_LINE.load(Ordering::Relaxed);
    assert!(
        matches!(diagnosis, Diagnosis::NotInMask { .. }),
        "{message}"
    );
    assert!(
        message.contains(&format!("emulated.rs:{line}")),
        "line {line}: {message}"
    );
}

// --- shared memory ---------------------------------------------------------------

#[kernel]
pub unsafe fn two_arrays(out: *mut usize) {
    let i = thread::thread_idx_x() as usize;
    let mut addresses = [0; 3];
    for address in &mut addresses[..2] {
        // The same place in the source is the same array.
        *address = shared_array![u64; 16].addr();
    }
    addresses[2] = shared_array![u64; 16].addr();
    unsafe { (out.add(4 * i)).cast::<[usize; 3]>().write(addresses) };
}

#[test]
fn a_shared_array_is_one_per_place_in_the_source() {
    let mut out = [0; 8];
    run::<two_arrays>(2, &(output(&mut out),));
    assert_eq!(out[0], out[1]);
    assert_ne!(out[0], out[2]);
    assert_eq!(out[..3], out[4..7], "one array per block, not per thread");
    assert!(out[0].is_multiple_of(8));
}

#[kernel]
pub unsafe fn reverse_blocks(data: *mut f32) {
    let tile = shared_array![f32; 32];
    let dynamic = shared::dynamic_shared_mem::<f32>();
    let (i, n) = (thread::thread_idx_x() as usize, 32);
    let global = thread::index_1d() as usize;
    unsafe {
        *tile.add(i) = *data.add(global);
        *dynamic.add(i) = *data.add(global) * 100.0;
    }
    thread::sync_threads();
    unsafe { *data.add(global) = *tile.add(n - 1 - i) + *dynamic.add(i) };
}

#[test]
fn blocks_have_shared_memory_of_their_own() {
    let mut data: Vec<f32> = (0..8 * 32).map(|i| i as f32).collect();
    let report = try_run::<reverse_blocks>(
        [8, 1, 1],
        [32, 1, 1],
        128,
        &DeviceMemory::new(),
        &(output(&mut data),),
    )
    .unwrap();
    for (i, &value) in data.iter().enumerate() {
        let partner = i / 32 * 32 + 31 - i % 32;
        assert_eq!(value, partner as f32 + i as f32 * 100.0, "element {i}");
    }
    assert_eq!(report.shared_bytes, 256);
}

#[kernel]
pub unsafe fn spaces(out: *mut [bool; 5]) {
    let tile = shared_array![u32; 8];
    let dynamic = shared::dynamic_shared_mem::<u32>();
    let local = [0_u32; 4];
    let is =
        |pointer: *const u32, space| unsafe { cuda_std::ptr::is_in_address_space(pointer, space) };
    unsafe {
        *out = [
            is(tile.add(7), AddressSpace::Shared) && !is(tile, AddressSpace::Global),
            is(dynamic.add(1), AddressSpace::Shared),
            is(out.cast(), AddressSpace::Global) && !is(out.cast(), AddressSpace::Shared),
            is(local.as_ptr(), AddressSpace::Local),
            is((&raw const WEIGHTS).cast(), AddressSpace::Constant),
        ];
        let shared_address =
            cuda_std::ptr::convert_generic_to_specific_address_space(tile, AddressSpace::Shared);
        let back = cuda_std::ptr::convert_specific_address_space_to_generic(
            shared_address,
            AddressSpace::Shared,
        );
        assert_eq!(back, tile.cast_const());
    }
}

#[test]
fn pointers_know_their_address_space() {
    let mut out = vec![[false; 5]];
    try_run::<spaces>(
        [1, 1, 1],
        [1, 1, 1],
        16,
        &DeviceMemory::new(),
        &(output(&mut out),),
    )
    .unwrap();
    assert_eq!(out, [[true; 5]]);
}

#[kernel]
pub unsafe fn sizes(out: *mut u32) {
    let tile = shared_array![u32; 50];
    unsafe { *tile = 1 };
    unsafe { *out = mem::dynamic_smem_size() };
    unsafe { *out.add(1) = mem::total_smem_size() };
}

#[test]
fn the_size_of_shared_memory_is_known() {
    let mut out = [0; 2];
    try_run::<sizes>(
        [1, 1, 1],
        [1, 1, 1],
        100,
        &DeviceMemory::new(),
        &(output(&mut out),),
    )
    .unwrap();
    assert_eq!(out, [100, 384], "100 + 200 bytes, in units of 128");
}

// --- copies, caches, textures ----------------------------------------------------

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct Body([f32; 4]);

#[kernel]
pub unsafe fn copies(words: *const f32, bodies: *const Body, out: *mut f32, early: *mut u32) {
    let tile = shared_array![f32; 32];
    let staged = shared_array![Body; 32];
    let i = thread::thread_idx_x() as usize;
    unsafe { async_copy::cp_async_ca(tile.add(i), words.add(i)) };
    async_copy::cp_async_commit_group();
    unsafe { async_copy::cp_async_cg(staged.add(i), bodies.add(i)) };
    async_copy::cp_async_commit_group();
    async_copy::cp_async_wait_group::<1>();
    thread::sync_threads();
    let first = unsafe { *tile.add(31 - i) };
    unsafe { *early.add(i) = (*staged.add(i)).0[3].to_bits() };
    async_copy::cp_async_wait_all();
    thread::sync_threads();
    unsafe { *out.add(i) = first + (*staged.add(31 - i)).0[3] };
}

#[test]
fn asynchronous_copies_arrive_when_they_are_waited_for() {
    let words: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let bodies: Vec<Body> = (0..32)
        .map(|i| Body([0.0, 0.0, 0.0, 100.0 * i as f32]))
        .collect();
    let (mut out, mut early) = ([0.0; 32], [0; 32]);
    run::<copies>(
        32,
        &(
            input(&words),
            input(&bodies),
            output(&mut out),
            output(&mut early),
        ),
    );
    assert_eq!(out, core::array::from_fn(|i| 101.0 * (31 - i) as f32));
    assert_eq!(
        early,
        [cuda_emulator::Poison::default().word(); 32],
        "read too early"
    );
}

#[kernel]
pub unsafe fn cached(from: &[Body], to: *mut Body, bytes: *mut u8) {
    let i = thread::thread_idx_x() as usize;
    let from = from.as_ptr();
    unsafe {
        cache::store_streaming(to.add(i), cache::load_readonly(from.add(i)));
        cache::store_l2(to.add(i + 4), cache::load_streaming(from.add(i)));
        cache::store_l2(bytes.add(i), cache::load_l2(bytes.add(i)) + 1);
    }
}

#[test]
fn cached_loads_and_stores_move_values() {
    let from: Vec<Body> = (0..4).map(|i| Body([i as f32; 4])).collect();
    let mut to = [Body([0.0; 4]); 8];
    let mut bytes = [1, 2, 3, 255 - 1];
    run::<cached>(4, &(input(&from), output(&mut to), output(&mut bytes)));
    assert_eq!(to[..4], from[..]);
    assert_eq!(to[4..], from[..]);
    assert_eq!(bytes, [2, 3, 4, 255]);
}

/// Accesses a word at an offset of `side` bytes: loads it if `stores` is 0,
/// else stores it.
#[kernel]
pub unsafe fn beside(words: *mut u32, side: u32, stores: u32) {
    let word = unsafe { words.byte_add(side as usize) };
    if stores == 0 {
        let _ = unsafe { cache::load_readonly(word) };
    } else {
        unsafe { cache::store_streaming(word, 1) };
    }
}

#[test]
fn misaligned_addresses_are_refused_as_a_gpu_refuses_them() {
    for (side, stores, fails) in [(0, 0, false), (0, 1, false), (2, 0, true), (1, 1, true)] {
        let mut words = [0; 2];
        let memory = DeviceMemory::new();
        let args = (output(&mut words), side, stores);
        let outcome = try_run::<beside>([1; 3], [1; 3], 0, &memory, &args);
        let refusal = outcome.err().map(|diagnosis| diagnosis.to_string());
        assert_eq!(refusal.is_some(), fails, "{side} {stores}");
        if let Some(refusal) = refusal {
            assert!(
                refusal.contains("misaligned access of 4 bytes"),
                "{refusal}"
            );
        }
    }
}

#[kernel]
pub unsafe fn fetches(linear: u64, planar: u64, out: *mut [f32; 3]) {
    let i = thread::thread_idx_x();
    let row = unsafe {
        [
            texture::tex1d_fetch(linear, i as i32 - 1),
            texture::tex2d(planar, i as f32 - 0.5, 1.5),
            texture::tex1d(planar, i as f32 + 0.5),
        ]
    };
    unsafe { *out.add(i as usize) = row };
}

#[test]
fn textures_are_read_by_handle() {
    let memory = DeviceMemory::new();
    // Two rows of three elements, 32 bytes apart.
    let mut buffer = memory.alloc(64, 32, "image").unwrap();
    for (i, value) in [1.0_f32, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 5.0, 6.0]
        .iter()
        .enumerate()
    {
        buffer.copy_from_bytes(4 * i, &value.to_ne_bytes());
    }
    let bind = |shape| {
        memory
            .bind_texture(&TextureDescriptor {
                addr: buffer.addr(),
                shape,
            })
            .unwrap()
    };
    let linear = bind(TextureShape::Linear { width: 3 });
    let planar = bind(TextureShape::Pitch2d {
        width: 3,
        height: 2,
        pitch_bytes: 32,
        addressing: [Addressing::Clamp; 2],
        normalised: false,
    });
    let mut out = [[0.0; 3]; 5];
    try_run::<fetches>(
        [1, 1, 1],
        [5, 1, 1],
        0,
        &memory,
        &(linear, planar, output(&mut out)),
    )
    .unwrap();
    assert_eq!(
        out,
        [
            [0.0, 4.0, 1.0],
            [1.0, 4.0, 2.0],
            [2.0, 5.0, 3.0],
            [3.0, 6.0, 3.0],
            [0.0, 6.0, 3.0],
        ]
    );
}

// --- atomics ---------------------------------------------------------------------

#[kernel]
pub unsafe fn sums(
    float: &AtomicF32,
    count: &AtomicU32,
    block: &BlockAtomicU64,
    system: &SystemAtomicF64,
) {
    float.fetch_add(0.5, Ordering::Relaxed);
    count.fetch_max(thread::index(), Ordering::AcqRel);
    unsafe { block.fetch_add(3, Ordering::SeqCst) };
    system.fetch_sub(0.25, Ordering::Release);
    unsafe {
        cuda_std::atomic::mid::atomic_inc_bounded_relaxed_u32_device(count.as_ptr().add(1), 6);
        cuda_std::atomic::mid::atomic_dec_bounded_relaxed_u32_device(count.as_ptr().add(2), 4);
    }
}

#[test]
fn atomics_lose_nothing() {
    let mut float = [AtomicF32::new(0.0)];
    let mut counts = [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(9)];
    let mut block = [BlockAtomicU64::new(0)];
    let mut system = [SystemAtomicF64::new(0.0)];
    let report = try_run::<sums>(
        [4, 1, 1],
        [64, 1, 1],
        0,
        &DeviceMemory::new(),
        &(
            input(&float),
            // After the first there are two more, which the kernel writes as
            // well.
            unsafe { In::from_raw((&raw mut counts).expose_provenance() as u64, 3) },
            input(&block),
            input(&system),
        ),
    )
    .unwrap();
    assert_eq!(core::mem::take(&mut float[0]).into_inner(), 128.0);
    let [max, inc, dec] = counts.map(AtomicU32::into_inner);
    assert_eq!(max, 255);
    assert_eq!(inc, 256 % 7, "0 to 6, then 0 again");
    assert_eq!(dec, 4, "9 is above 4, so 4; then 51 times around");
    assert_eq!(core::mem::take(&mut block[0]).into_inner(), 768);
    assert_eq!(core::mem::take(&mut system[0]).into_inner(), -64.0);
    assert!(report.atomics >= 6 * 256, "{}", report.atomics);
}

#[test]
fn atomics_work_outside_a_launch() {
    let value = AtomicF32::new(f32::NAN);
    assert!(
        value.fetch_add(1.0, Ordering::SeqCst).is_nan(),
        "a NaN does not keep it busy"
    );
    assert!(value.swap(2.0, Ordering::AcqRel).is_nan());
    assert_eq!(
        value.compare_exchange(2.0, -2.0, Ordering::Acquire),
        Ok(2.0)
    );
    assert_eq!(
        value.compare_exchange(2.0, 3.0, Ordering::Relaxed),
        Err(-2.0)
    );
    assert_eq!(
        value.fetch_and(f32::from_bits(!(1 << 31)), Ordering::Relaxed),
        -2.0
    );
    assert_eq!(value.fetch_or(-0.0, Ordering::Release), 2.0);
    assert_eq!(value.fetch_xor(-0.0, Ordering::Relaxed), -2.0);
    assert_eq!(value.load(Ordering::Acquire), 2.0);
    value.store(5.0, Ordering::Release);
    assert_eq!(value.into_inner(), 5.0);

    let signed = cuda_std::atomic::SystemAtomicI32::new(3);
    assert_eq!(signed.fetch_min(-4, Ordering::Relaxed), 3);
    assert_eq!(signed.fetch_sub(i32::MAX, Ordering::Relaxed), -4);
    assert_eq!(signed.into_inner(), (-4_i32).wrapping_sub(i32::MAX));
}

#[test]
fn an_order_that_an_access_cannot_have_is_refused() {
    let value = AtomicU32::new(0);
    let load = std::panic::catch_unwind(|| value.load(Ordering::Release)).unwrap_err();
    assert!(
        load.downcast_ref::<&str>()
            .unwrap()
            .contains("writes nothing")
    );
    let store = std::panic::catch_unwind(|| value.store(1, Ordering::AcqRel)).unwrap_err();
    assert!(
        store
            .downcast_ref::<&str>()
            .unwrap()
            .contains("reads nothing")
    );
}

/// Thread 0 waits for the other thread of the block by reading.
#[kernel]
pub unsafe fn waits(flag: &AtomicU32, out: *mut u32) {
    if thread::thread_idx_x() == 0 {
        while flag.load(Ordering::Acquire) == 0 {
            thread::nanosleep(100);
        }
        unsafe { *out = 1 };
    } else {
        thread::device_fence();
        flag.store(1, Ordering::Release);
    }
}

#[test]
fn a_thread_may_wait_for_another() {
    let flag = [AtomicU32::new(0)];
    let mut out = [0];
    run::<waits>(2, &(input(&flag), output(&mut out)));
    assert_eq!(out, [1]);
}

// --- constants, assertions, the rest ---------------------------------------------

/// A constant that the host sets.
#[externally_visible]
#[address_space(constant)]
pub static mut WEIGHTS: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

#[kernel]
pub unsafe fn weighted(out: *mut f32) {
    let i = thread::thread_idx_x() as usize;
    unsafe { *out.add(i) = WEIGHTS[i] };
}

#[test]
fn a_constant_is_set_through_its_handle() {
    assert_eq!(WEIGHTS::NAME, "WEIGHTS");
    let mut out = [0.0; 4];
    run::<weighted>(4, &(output(&mut out),));
    assert_eq!(out, [1.0, 2.0, 3.0, 4.0]);
    unsafe { *WEIGHTS::host_address() = [9.0; 4] };
    run::<weighted>(4, &(output(&mut out),));
    assert_eq!(out, [9.0; 4]);
}

#[kernel]
pub unsafe fn asserts(value: u32) {
    cuda_std::assert_eq!(value, 3);
    cuda_std::assert_ne!(value, 4, "never {}", 4);
    cuda_std::print!("{value}");
    cuda_std::println!(" is three");
}

#[test]
fn a_failed_assertion_fails_the_launch() {
    run::<asserts>(1, &(3,));
    let memory = DeviceMemory::new();
    let diagnosis = try_run::<asserts>([1, 1, 1], [1, 1, 1], 0, &memory, &(5,)).unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::Panic { .. }), "{diagnosis}");
    assert!(diagnosis.to_string().contains("left: 5"), "{diagnosis}");
}

#[gpu_only]
fn multiprocessor() -> u32 {
    let id: u32;
    unsafe { core::arch::asm!("mov.u32 {}, %smid;", out(reg32) id) };
    id
}

#[kernel]
pub unsafe fn asks_the_gpu(out: *mut u32) {
    unsafe { *out = multiprocessor() };
}

#[test]
fn what_only_the_gpu_can_do_says_so() {
    let mut out = [0];
    let memory = DeviceMemory::new();
    let diagnosis = try_run::<asks_the_gpu>([1, 1, 1], [1, 1, 1], 0, &memory, &(output(&mut out),))
        .unwrap_err();
    assert!(
        diagnosis
            .to_string()
            .contains("`multiprocessor` is compiled for the GPU only"),
        "{diagnosis}"
    );
}

#[kernel]
pub unsafe fn clocks(out: *mut u64) {
    let start = misc::clock();
    thread::grid_fence();
    thread::system_fence();
    misc::breakpoint();
    misc::profiler_counter(7);
    let mut end = misc::clock();
    while end == start {
        end = misc::clock();
    }
    unsafe { *out = end - start };
}

#[test]
fn the_clock_runs() {
    let mut out = [0];
    run::<clocks>(1, &(output(&mut out),));
    assert!(out[0] > 0);
    let panic = std::panic::catch_unwind(|| misc::profiler_counter(8)).unwrap_err();
    assert!(panic.downcast_ref::<&str>().unwrap().contains("0 to 7"));
}

// --- arguments -------------------------------------------------------------------

#[derive(Clone, Copy)]
#[repr(C)]
pub struct View {
    origin: [f32; 3],
    width: u8,
    scale: f64,
}

#[kernel]
pub unsafe fn totals(values: &[u32], total: *mut u32) {
    unsafe { *total = (*total).wrapping_add(values[thread::index_1d() as usize]) };
}

/// The diagnosis of a verification of `totals`.
fn verified(memory: &DeviceMemory, values: u64, total: u64) -> String {
    let values = unsafe { In::from_raw(values, 64) };
    let args = totals::args(values, unsafe { Out::from_raw(total, 1) });
    let config = LaunchConfig {
        kernel: totals::NAME,
        grid: [1, 1, 1],
        block: [64, 1, 1],
        dynamic_shared_bytes: 0,
    };
    let thread = || unsafe { totals::run_thread(&args) };
    let outcome = unsafe { cuda_emulator::verify(&config, &Verify::default(), memory, &thread) };
    let mut parameters = Vec::new();
    totals::addresses(&args, &mut |name, address| parameters.push((name, address)));
    assert_eq!(parameters.len(), 2);
    let diagnosis = outcome.unwrap_err();
    diagnosis.name_parameters(&parameters).to_string()
}

#[test]
fn messages_of_a_verification_name_the_parameter() {
    let memory = DeviceMemory::new();
    let mut values = memory.alloc(64 * 4, 4, "first").unwrap();
    let mut total = memory.alloc(4, 4, "second").unwrap();
    // Read, but never written.
    let message = verified(&memory, values.addr(), total.addr());
    assert!(message.contains("`total`"), "{message}");
    assert!(!message.contains("second"), "{message}");
    // Updated by all threads.
    values.copy_from_bytes(0, &[1; 256]);
    total.copy_from_bytes(0, &[0; 4]);
    let message = verified(&memory, values.addr(), total.addr());
    assert!(
        message.contains("data race on element 0 of `total`"),
        "{message}"
    );
}

/// A kernel with every kind of parameter.
#[kernel]
pub unsafe fn mixed(
    a: &[u16],
    one: &f32,
    raw: *const [u8],
    view: View,
    flag: bool,
    out: &mut [f64],
    rest: *mut [u32],
    last: &mut u64,
) {
    let sum: f64 = a.iter().map(|&x| f64::from(x)).sum();
    let bytes = unsafe { &*raw };
    out[0] = sum + f64::from(*one) + f64::from(bytes[1]) + view.scale + f64::from(view.origin[2]);
    out[1] = f64::from(view.width) + f64::from(u8::from(flag));
    unsafe { (*rest)[1] = bytes.len() as u32 };
    *last = rest.len() as u64;
}

const VIEW: View = View {
    origin: [1.0, 2.0, 3.0],
    width: 7,
    scale: 0.5,
};

#[test]
fn arguments_reach_the_kernel() {
    let (mut out, mut rest, mut last) = ([0.0; 2], [0; 3], [0]);
    {
        let args = mixed::args(
            input(&[1, 2, 3]),
            input(&[10.0]),
            input(&[4, 5]),
            VIEW,
            true,
            output(&mut out),
            output(&mut rest),
            output(&mut last),
        );
        run::<mixed>(1, &args);
    }
    assert_eq!(out, [24.5, 8.0]);
    assert_eq!(rest, [0, 2, 0]);
    assert_eq!(last, [3]);
}

#[test]
fn arguments_pack_as_the_entry_point_takes_them() {
    let (mut out, mut rest, mut last) = ([0.0; 2], [0; 3], [0]);
    let (a, bytes) = ([1, 2, 3], [4, 5]);
    let addresses = [
        a.as_ptr().addr(),
        out.as_ptr().addr(),
        bytes.as_ptr().addr(),
        last.as_ptr().addr(),
    ];
    let args = mixed::args(
        input(&a),
        input(&[10.0]),
        input(&bytes),
        VIEW,
        true,
        output(&mut out),
        output(&mut rest),
        output(&mut last),
    );
    let mut pack = ParamPack::new();
    mixed::pack(&args, &mut pack);
    // Slices are two parameters: a, one, raw, view, flag, out, rest, last.
    assert_eq!(
        pack.sizes().collect::<Vec<_>>(),
        [8, 8, 8, 8, 8, 24, 1, 8, 8, 8, 8, 8]
    );
    assert!(!pack.is_empty());
    let pointers = pack.as_ptrs();
    assert_eq!(pointers.len(), pack.len());
    let word = |i: usize| unsafe { *pointers[i].cast::<usize>() };
    assert_eq!([word(0), word(7), word(3), word(11)], addresses);
    assert_eq!([word(1), word(4), word(8), word(10)], [3, 2, 2, 3]);
    let view = unsafe { *pointers[5].cast::<View>() };
    assert_eq!(
        (view.origin, view.width, view.scale),
        ([1.0, 2.0, 3.0], 7, 0.5)
    );
    assert_eq!(unsafe { *pointers[6].cast::<u8>() }, 1);
}

#[test]
fn packed_parameters_are_aligned() {
    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Wide(#[allow(dead_code, reason = "only its place matters")] u8);

    let mut pack = ParamPack::new();
    for i in 0..100_u8 {
        pack.push_value(&i);
        pack.push_value(&Wide(i));
        pack.push_value(&u64::from(i));
        pack.push_value(&());
    }
    let pointers = pack.as_ptrs();
    for (i, group) in pointers.chunks(3).enumerate() {
        assert!(group[1].cast::<Wide>().is_aligned() && group[2].cast::<u64>().is_aligned());
        assert_eq!(
            unsafe { (*group[0].cast::<u8>(), *group[2].cast::<u64>()) },
            (i as u8, i as u64)
        );
    }
    assert!(format!("{pack:?}").starts_with("ParamPack([1, 64, 8, 1"));
}

#[kernel]
pub unsafe fn no_parameters() {}

#[test]
fn a_kernel_may_have_no_parameters_and_an_empty_slice() {
    let mut pack = ParamPack::new();
    no_parameters::pack(&no_parameters::args(), &mut pack);
    assert!(pack.is_empty() && pack.as_ptrs().is_empty());
    assert_eq!(run::<no_parameters>(4, &()).threads, 4);

    let nothing: In<'_, f32> = unsafe { In::from_raw(0, 0) };
    assert_eq!(
        (nothing.addr(), nothing.slice_addr()),
        (0, 4),
        "a slice has no null pointer"
    );
    assert!(nothing.is_empty() && unsafe { nothing.as_slice() }.is_empty());
    let nowhere: Out<'_, f32> = unsafe { Out::from_raw(0, 0) };
    assert!(nowhere.is_empty() && unsafe { nowhere.as_mut_slice() }.is_empty());
    assert_eq!(format!("{nothing:?}"), "In(0x0, 0 × f32)");
}

#[test]
fn the_kernel_is_still_an_ordinary_function() {
    let function: unsafe fn() = no_parameters;
    unsafe { function() };
}

// --- newer hardware --------------------------------------------------------------

#[repr(C, align(16))]
struct Aligned<T>(T);

/// Two phases of one barrier: reverses each half of `input`.
#[kernel]
pub unsafe fn bulk(input: *const f32, output: *mut f32) {
    let tile = shared_array![f32; 64];
    let barrier = shared_array![Barrier; 1];
    let i = thread::thread_idx_x() as usize;
    unsafe {
        if i == 0 {
            bulk_copy::init(barrier, 64);
            bulk_copy::fence_init();
        }
        thread::sync_threads();
        for phase in 0..2 {
            let start = 64 * phase as usize;
            if i == 0 {
                bulk_copy::arrive_expecting(barrier, 256);
                bulk_copy::copy_to_shared(tile.cast(), input.add(start).cast(), 256, barrier);
            } else {
                bulk_copy::arrive(barrier);
            }
            bulk_copy::wait(barrier, phase);
            let value = *tile.add(63 - i);
            thread::sync_threads();
            *tile.add(i) = value;
            bulk_copy::fence_shared();
            thread::sync_threads();
            if i == 0 {
                bulk_copy::copy_to_global(output.add(start).cast(), tile.cast(), 256);
                bulk_copy::commit();
                bulk_copy::wait_group::<0>();
            }
            thread::sync_threads();
        }
    }
}

#[test]
fn bulk_copies_complete_the_phases_of_their_barrier() {
    let input_data = Aligned(core::array::from_fn::<f32, 128, _>(|i| i as f32));
    let mut out = Aligned([0.0; 128]);
    run::<bulk>(64, &(input(&input_data.0), output(&mut out.0)));
    assert_eq!(
        out.0,
        core::array::from_fn(|i| (64 * (i / 64) + 63 - i % 64) as f32)
    );
}

#[kernel]
pub unsafe fn unexpected_phase(out: *mut u32) {
    let barrier = shared_array![Barrier; 1];
    unsafe {
        bulk_copy::init(barrier, 2);
        bulk_copy::arrive(barrier);
        *out = u32::from(bulk_copy::is_over(barrier, 0));
        bulk_copy::arrive_expecting(barrier, 16);
        *out.add(1) = u32::from(bulk_copy::is_over(barrier, 0));
        // The arrivals are complete, the bytes are not.
        let from = Aligned([7_u32; 4]);
        let to = shared_array![u32; 4];
        bulk_copy::copy_to_shared(to.cast(), (&raw const from).cast(), 16, barrier);
        *out.add(2) = u32::from(bulk_copy::is_over(barrier, 0));
        *out.add(3) = u32::from(bulk_copy::is_over(barrier, 1));
        *out.add(4) = *to.add(3);
    }
}

#[test]
fn a_phase_is_over_when_arrivals_and_bytes_are_there() {
    let mut out = [9; 5];
    run::<unexpected_phase>(1, &(output(&mut out),));
    assert_eq!(out, [0, 0, 1, 0, 7]);
}

#[kernel]
pub unsafe fn neighbours(out: *mut u32, arrived: *mut u32) {
    let mine = shared_array![u32; 1];
    let (rank, blocks) = (cluster::block_rank(), cluster::blocks());
    cluster::wait_for_launches_before();
    unsafe { *cluster::in_block(mine, (rank + 1) % blocks) = 40 + blocks };
    cluster::sync_cluster();
    unsafe { *out.add(thread::block_idx_x() as usize) = *mine };
    cluster::launch_dependents();
    unsafe { cluster::sync_grid(arrived) };
}

#[test]
fn a_cluster_is_of_one_block_and_the_grids_barrier_too() {
    let (mut out, mut arrived) = ([0; 2], [0]);
    run::<neighbours>(1, &(output(&mut out), output(&mut arrived)));
    assert_eq!(out, [41, 0]);
    let two = try_run::<neighbours>(
        [2, 1, 1],
        [1, 1, 1],
        0,
        &DeviceMemory::new(),
        &(output(&mut out), output(&mut arrived)),
    );
    let said = two.unwrap_err().to_string();
    assert!(said.contains("all its blocks at once"), "{said}");
}

#[kernel]
pub unsafe fn halves_product(
    a: *const [u16; 8],
    b: *const [u16; 8],
    f16s: *mut [f32; 4],
    bf16s: *mut [f32; 4],
) {
    // The four quarters of A: upper left, lower left, upper right, lower right;
    // then B by rows.
    let tile = shared_array![[u16; 8]; 32];
    let lane = thread::thread_idx_x() as usize;
    unsafe {
        *tile.add(lane) = *a.add(lane);
        thread::sync_threads();
        let left = matrix::load_matrix::<4>(tile.add(lane));
        thread::sync_threads();
        *tile.add(lane) = *b.add(lane % 16);
        thread::sync_threads();
        let right = matrix::load_matrix_transposed::<2>(tile.add(lane));
        *f16s.add(lane) = matrix::mma_f16(left, right, *f16s.add(lane));
        *bf16s.add(lane) = matrix::mma_bf16(left, right, *bf16s.add(lane));
    }
}

#[test]
fn a_warp_multiplies_matrices_of_halves() {
    let a: Vec<f32> = (0..256).map(|i| ((i * 37) % 19) as f32 - 9.0).collect();
    let b: Vec<f32> = (0..128).map(|i| ((i * 23) % 17) as f32 - 8.0).collect();
    for bf16s in [false, true] {
        let bits = |x: f32| match bf16s {
            false => f16::from_f32(x).to_bits(),
            true => bf16::from_f32(x).to_bits(),
        };
        let quarter = |lane: usize| {
            let (matrix, row) = (lane / 8, lane % 8);
            let (row, column) = (row + 8 * (matrix % 2), 8 * (matrix / 2));
            core::array::from_fn(|j| bits(a[16 * row + column + j]))
        };
        let left: [[u16; 8]; 32] = core::array::from_fn(quarter);
        let right: [[u16; 8]; 16] =
            core::array::from_fn(|k| core::array::from_fn(|j| bits(b[8 * k + j])));
        let start = |lane: usize| [lane as f32, 0.5, -1.0, 0.0];
        let mut sums = [core::array::from_fn(start), core::array::from_fn(start)];
        let [f16_sums, bf16_sums]: &mut [[[f32; 4]; 32]; 2] = &mut sums;
        run::<halves_product>(
            32,
            &(
                input(&left),
                input(&right),
                output(f16_sums),
                output(bf16_sums),
            ),
        );
        for (lane, found) in sums[usize::from(bf16s)].iter().enumerate() {
            for (i, &found) in found.iter().enumerate() {
                let (row, column) = (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2);
                let product: f32 = (0..16).map(|k| a[16 * row + k] * b[8 * k + column]).sum();
                assert_eq!(found, start(lane)[i] + product, "lane {lane}, element {i}");
            }
        }
    }
}

#[kernel]
pub unsafe fn bytes_product(a: *const [u32; 4], b: *const [u32; 2], c: *mut [i32; 4]) {
    let lane = thread::thread_idx_x() as usize;
    unsafe { *c.add(lane) = matrix::mma_i8(*a.add(lane), *b.add(lane), *c.add(lane)) };
}

#[test]
fn a_warp_multiplies_matrices_of_bytes() {
    let a = |row: usize, k: usize| ((row * 57 + k * 91 + 3) % 256) as u8 as i8;
    let b = |k: usize, column: usize| ((k * 39 + column * 117 + 200) % 256) as u8 as i8;
    let word = |of: &dyn Fn(usize) -> i8| u32::from_le_bytes(core::array::from_fn(|i| of(i) as u8));
    let left: [[u32; 4]; 32] = core::array::from_fn(|lane| {
        core::array::from_fn(|i| {
            let (row, k) = (lane / 4 + 8 * (i % 2), 4 * (lane % 4) + 16 * (i / 2));
            word(&|j| a(row, k + j))
        })
    });
    let right: [[u32; 2]; 32] = core::array::from_fn(|lane| {
        core::array::from_fn(|i| word(&|j| b(4 * (lane % 4) + 16 * i + j, lane / 4)))
    });
    let mut sums = [[i32::MAX, 0, -5, 1]; 32];
    run::<bytes_product>(32, &(input(&left), input(&right), output(&mut sums)));
    for (lane, found) in sums.iter().enumerate() {
        for (i, &found) in found.iter().enumerate() {
            let (row, column) = (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2);
            let product: i32 = (0..32)
                .map(|k| i32::from(a(row, k)) * i32::from(b(k, column)))
                .sum();
            let start = [i32::MAX, 0, -5, 1][i];
            assert_eq!(found, start.wrapping_add(product));
        }
    }
}

/// A value without bytes.
#[derive(Clone, Copy)]
pub struct Nothing;

#[kernel]
pub unsafe fn beside_nothing(out: *mut u32, _nothing: Nothing, value: u32) {
    unsafe { *out = value };
}

/// The compiler leaves it out of the entry point, so the driver must not get a pointer to it.
#[test]
fn a_value_of_size_zero_is_not_packed() {
    let mut out = [0];
    let args = beside_nothing::args(output(&mut out), Nothing, 7);
    let mut pack = ParamPack::new();
    beside_nothing::pack(&args, &mut pack);
    assert_eq!(pack.sizes().collect::<Vec<_>>(), [8, 4]);
    assert_eq!(unsafe { *pack.as_ptrs()[1].cast::<u32>() }, 7);
}
