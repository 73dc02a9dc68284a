//! LLVM intrinsics and system calls of the device implementation.
//!
//! An `extern "C"` declaration whose link name starts with `llvm.` is the
//! intrinsic itself. The optimiser knows its properties (`convergent` for
//! warp-synchronous operations), which it does not know of inline assembly.
//!
//! A shuffle or match that returns a predicate beside its value returns a pair
//! `{i32, i1}` to LLVM. Only the `unadjusted` calling convention passes a Rust
//! `(u32, bool)` that way.

#[allow(improper_ctypes)]
unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32p"]
    pub fn shfl_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.shfl.sync.up.i32p"]
    pub fn shfl_up(mask: u32, value: u32, delta: u32, clamp: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.shfl.sync.down.i32p"]
    pub fn shfl_down(mask: u32, value: u32, delta: u32, clamp: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32p"]
    pub fn shfl_bfly(mask: u32, value: u32, lane_mask: u32, clamp: u32) -> (u32, bool);

    #[link_name = "llvm.nvvm.vote.all.sync"]
    pub fn vote_all(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    pub fn vote_any(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    pub fn vote_ballot(mask: u32, predicate: bool) -> u32;

    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    pub fn match_any_32(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i64"]
    pub fn match_any_64(mask: u32, value: u64) -> u32;
    #[link_name = "llvm.nvvm.match.all.sync.i32p"]
    pub fn match_all_32(mask: u32, value: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.match.all.sync.i64p"]
    pub fn match_all_64(mask: u32, value: u64) -> (u32, bool);

    #[link_name = "llvm.nvvm.isspacep.global"]
    pub fn isspacep_global(pointer: *const u8) -> bool;
    #[link_name = "llvm.nvvm.isspacep.shared"]
    pub fn isspacep_shared(pointer: *const u8) -> bool;
    #[link_name = "llvm.nvvm.isspacep.const"]
    pub fn isspacep_const(pointer: *const u8) -> bool;
    #[link_name = "llvm.nvvm.isspacep.local"]
    pub fn isspacep_local(pointer: *const u8) -> bool;

    #[link_name = "llvm.nvvm.barrier.cta.red.popc.aligned.all"]
    pub fn barrier_red_popc(barrier: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.barrier.cta.red.and.aligned.all"]
    pub fn barrier_red_and(barrier: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.barrier.cta.red.or.aligned.all"]
    pub fn barrier_red_or(barrier: u32, predicate: bool) -> bool;
}

// cuda_builder defines these with LLVM's intrinsics of the same names, which
// take pointers to shared and to global memory.
#[cfg(target_feature = "sm_80")]
unsafe extern "C" {
    #[link_name = "__cuda_std_cp_async_ca_4"]
    pub fn cp_async_ca_4(dst: *mut u8, src: *const u8);
    #[link_name = "__cuda_std_cp_async_ca_8"]
    pub fn cp_async_ca_8(dst: *mut u8, src: *const u8);
    #[link_name = "__cuda_std_cp_async_ca_16"]
    pub fn cp_async_ca_16(dst: *mut u8, src: *const u8);
    #[link_name = "__cuda_std_cp_async_cg_16"]
    pub fn cp_async_cg_16(dst: *mut u8, src: *const u8);
}

unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.tid.x"]
    pub fn tid_x() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.tid.y"]
    pub fn tid_y() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.tid.z"]
    pub fn tid_z() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ctaid.x"]
    pub fn ctaid_x() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ctaid.y"]
    pub fn ctaid_y() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ctaid.z"]
    pub fn ctaid_z() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ntid.x"]
    pub fn ntid_x() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ntid.y"]
    pub fn ntid_y() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.ntid.z"]
    pub fn ntid_z() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.nctaid.x"]
    pub fn nctaid_x() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.nctaid.y"]
    pub fn nctaid_y() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.nctaid.z"]
    pub fn nctaid_z() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.warpsize"]
    pub fn warpsize() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    pub fn laneid() -> u32;
    #[link_name = "llvm.nvvm.activemask"]
    pub fn activemask() -> u32;

    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
    pub fn barrier_sync(barrier: u32);
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    pub fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.membar.gl"]
    pub fn membar_gl();
    #[link_name = "llvm.nvvm.membar.sys"]
    pub fn membar_sys();

    #[link_name = "llvm.nvvm.read.ptx.sreg.dynamic_smem_size"]
    pub fn dynamic_smem_size() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.total_smem_size"]
    pub fn total_smem_size() -> u32;

    #[link_name = "llvm.nvvm.rsqrt.approx.f"]
    pub fn rsqrt_f(x: f32) -> f32;
    #[link_name = "llvm.nvvm.rsqrt.approx.ftz.f"]
    pub fn rsqrt_ftz_f(x: f32) -> f32;
    #[link_name = "llvm.nvvm.rcp.approx.ftz.f"]
    pub fn rcp_ftz_f(x: f32) -> f32;
    #[link_name = "llvm.nvvm.rcp.approx.ftz.d"]
    pub fn rcp_ftz_d(x: f64) -> f64;
    #[link_name = "llvm.nvvm.rsqrt.approx.d"]
    pub fn rsqrt_d(x: f64) -> f64;
    #[link_name = "llvm.nvvm.rsqrt.approx.ftz.d"]
    pub fn rsqrt_ftz_d(x: f64) -> f64;

    // IEEE 754-2019 minimumNumber and maximumNumber: `min` and `max`.
    #[link_name = "llvm.minimumnum.f64"]
    pub fn minimum_number_d(a: f64, b: f64) -> f64;
    #[link_name = "llvm.maximumnum.f64"]
    pub fn maximum_number_d(a: f64, b: f64) -> f64;
}

#[cfg(not(target_feature = "sm_80"))]
unsafe extern "C" {
    #[link_name = "llvm.minimumnum.f32"]
    pub fn minimum_number_f(a: f32, b: f32) -> f32;
    #[link_name = "llvm.maximumnum.f32"]
    pub fn maximum_number_f(a: f32, b: f32) -> f32;
}

// IEEE 754-2019 minimum and maximum: `min.NaN` and `max.NaN`.
#[cfg(target_feature = "sm_80")]
unsafe extern "C" {
    #[link_name = "llvm.minimum.f32"]
    pub fn minimum_f(a: f32, b: f32) -> f32;
    #[link_name = "llvm.maximum.f32"]
    pub fn maximum_f(a: f32, b: f32) -> f32;
}

#[cfg(target_feature = "sm_80")]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.redux.sync.add"]
    pub fn redux_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.min"]
    pub fn redux_min(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.max"]
    pub fn redux_max(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umin"]
    pub fn redux_umin(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    pub fn redux_umax(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.and"]
    pub fn redux_and(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.or"]
    pub fn redux_or(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.xor"]
    pub fn redux_xor(value: u32, mask: u32) -> u32;
}

// cuda_builder defines these with LLVM's half-precision types.
unsafe extern "C" {
    #[link_name = "__cuda_std_half_fma_f16"]
    pub fn half_fma_f16(a: u16, b: u16, c: u16) -> u16;
    #[link_name = "__cuda_std_half_eq_f16"]
    pub fn half_eq_f16(a: u16, b: u16) -> bool;
    #[link_name = "__cuda_std_half_round_f16"]
    pub fn half_round_f16(x: f32) -> u16;
    #[link_name = "__cuda_std_half_fma_f16x2"]
    pub fn half_fma_f16x2(a: u32, b: u32, c: u32) -> u32;
    #[link_name = "__cuda_std_half_round_f16x2"]
    pub fn half_round_f16x2(x: f32, y: f32) -> u32;
    #[link_name = "__cuda_std_half_add_f16x2"]
    pub fn half_add_f16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_sub_f16x2"]
    pub fn half_sub_f16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_mul_f16x2"]
    pub fn half_mul_f16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_min_f16x2"]
    pub fn half_min_f16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_max_f16x2"]
    pub fn half_max_f16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_lt_f16x2"]
    pub fn half_lt_f16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_le_f16x2"]
    pub fn half_le_f16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_eq_f16x2"]
    pub fn half_eq_f16x2(a: u32, b: u32) -> u32;
}

#[cfg(target_feature = "sm_80")]
unsafe extern "C" {
    #[link_name = "__cuda_std_half_fma_bf16"]
    pub fn half_fma_bf16(a: u16, b: u16, c: u16) -> u16;
    #[link_name = "__cuda_std_half_eq_bf16"]
    pub fn half_eq_bf16(a: u16, b: u16) -> bool;
    #[link_name = "__cuda_std_half_round_bf16"]
    pub fn half_round_bf16(x: f32) -> u16;
    #[link_name = "__cuda_std_half_fma_bf16x2"]
    pub fn half_fma_bf16x2(a: u32, b: u32, c: u32) -> u32;
    #[link_name = "__cuda_std_half_round_bf16x2"]
    pub fn half_round_bf16x2(x: f32, y: f32) -> u32;
    #[link_name = "__cuda_std_half_add_bf16x2"]
    pub fn half_add_bf16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_sub_bf16x2"]
    pub fn half_sub_bf16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_mul_bf16x2"]
    pub fn half_mul_bf16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_min_bf16x2"]
    pub fn half_min_bf16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_max_bf16x2"]
    pub fn half_max_bf16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_lt_bf16x2"]
    pub fn half_lt_bf16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_le_bf16x2"]
    pub fn half_le_bf16x2(a: u32, b: u32) -> u32;
    #[link_name = "__cuda_std_half_eq_bf16x2"]
    pub fn half_eq_bf16x2(a: u32, b: u32) -> u32;
}
