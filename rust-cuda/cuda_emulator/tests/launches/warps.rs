//! Tests warp operations: shuffles, votes, matches, barriers, masks.

use crate::common::{Buffer, ORDERS, config, launch, ordered, tid};
use cuda_emulator::intrinsics::{self as cuda, ShuffleKind};
use cuda_emulator::{DeviceMemory, Diagnosis, Doing, SourceMissing};

const FULL: u32 = u32::MAX;

/// Runs a kernel that computes a number per thread in every order.
fn results(block: u32, kernel: impl Fn(u32) -> u32 + Sync, check: impl Fn(&[u32])) {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &vec![0_u32; block as usize]);
    let p = out.ptr();
    for order in ORDERS {
        launch(&config(1, block), &ordered(order), &memory, &|| {
            p.write(tid() as isize, kernel(tid()));
        })
        .unwrap();
        check(&out.get());
    }
}

fn must_fail(block: u32, kernel: impl Fn() + Sync, check: impl Fn(&Diagnosis)) {
    let memory = DeviceMemory::new();
    for order in ORDERS {
        let diagnosis = launch(&config(1, block), &ordered(order), &memory, &kernel)
            .expect_err("the kernel is broken");
        check(&diagnosis);
    }
}

fn must_pass(block: u32, kernel: impl Fn() + Sync) {
    let memory = DeviceMemory::new();
    for order in ORDERS {
        launch(&config(1, block), &ordered(order), &memory, &kernel).unwrap();
    }
}

#[track_caller]
fn shuffle(mask: u32, value: u32, kind: ShuffleKind, arg: u32, width: u32) -> (u32, bool) {
    let (bits, inside) = cuda::shuffle(mask, u64::from(value), kind, arg, width);
    (bits as u32, inside)
}

#[test]
fn a_shuffle_tree_sums_a_warp() {
    results(
        128,
        |t| {
            let mut sum = t;
            for offset in [16, 8, 4, 2, 1] {
                sum += shuffle(FULL, sum, ShuffleKind::Xor, offset, 32).0;
            }
            sum
        },
        |out| {
            for (t, &sum) in out.iter().enumerate() {
                let first = t as u32 / 32 * 32;
                assert_eq!(sum, (first..first + 32).sum());
            }
        },
    );
}

#[test]
fn all_64_bits_travel() {
    results(
        32,
        |t| {
            let bits = u64::from(t) << 40 | 7;
            let (bits, _) = cuda::shuffle(FULL, bits, ShuffleKind::Index, 31 - t, 32);
            assert_eq!(bits & 0xFF, 7);
            (bits >> 40) as u32
        },
        |out| assert!(out.iter().enumerate().all(|(t, &v)| v == 31 - t as u32)),
    );
}

#[test]
fn out_of_range_shuffles_give_the_own_value() {
    results(
        32,
        |t| {
            let (up, up_inside) = shuffle(FULL, t + 100, ShuffleKind::Up, 4, 16);
            assert_eq!(up_inside, t % 16 >= 4);
            let (down, down_inside) = shuffle(FULL, t + 100, ShuffleKind::Down, 4, 16);
            assert_eq!(down_inside, t % 16 < 12);
            up << 16 | down
        },
        |out| {
            for (t, &v) in out.iter().enumerate() {
                let t = t as u32;
                let up = if t % 16 >= 4 { t - 4 } else { t };
                let down = if t % 16 < 12 { t + 4 } else { t };
                assert_eq!(v, (up + 100) << 16 | (down + 100));
            }
        },
    );
}

#[test]
fn an_inclusive_scan_by_shuffles() {
    results(
        64,
        |t| {
            let lane = cuda::lane_id();
            let mut sum = t % 5;
            for offset in [1, 2, 4, 8, 16] {
                let (other, inside) = shuffle(FULL, sum, ShuffleKind::Up, offset, 32);
                assert_eq!(inside, lane >= offset);
                if inside {
                    sum += other;
                }
            }
            sum
        },
        |out| {
            for (t, &v) in out.iter().enumerate() {
                let first = t / 32 * 32;
                assert_eq!(v, (first..=t).map(|i| i as u32 % 5).sum::<u32>());
            }
        },
    );
}

#[test]
fn votes_and_matches() {
    results(
        40,
        |t| {
            let lane = cuda::lane_id();
            let present = if t < 32 { FULL } else { 0xFF };
            let ballot = cuda::vote_ballot(FULL, lane.is_multiple_of(2));
            assert_eq!(ballot, 0x5555_5555 & present);
            assert!(cuda::vote_all(FULL, t < 40));
            assert!(!cuda::vote_all(FULL, lane != 3));
            assert!(cuda::vote_any(FULL, lane == 3));
            assert!(!cuda::vote_any(FULL, lane == 32));
            let same = cuda::match_any(FULL, u64::from(lane % 4));
            assert_eq!(same, (0x1111_1111 << (lane % 4)) & present);
            assert_eq!(cuda::match_all(FULL, 9), (present, true));
            assert_eq!(cuda::match_all(FULL, u64::from(lane)), (0, false));
            cuda::warp_barrier(FULL);
            1
        },
        |out| assert!(out.iter().all(|&v| v == 1)),
    );
}

#[test]
fn halves_of_a_warp_work_on_their_own() {
    results(
        32,
        |t| {
            let low = t < 16;
            let mask = if low { 0xFFFF } else { 0xFFFF_0000 };
            let rounds = if low { 3 } else { 5 };
            let mut value = t;
            for _ in 0..rounds {
                value = shuffle(mask, value, ShuffleKind::Xor, 1, 16).0;
            }
            value
        },
        |out| {
            assert!(out.iter().enumerate().all(|(t, &v)| v == (t as u32 ^ 1)));
        },
    );
}

#[test]
fn the_active_mask_is_as_converged_as_can_be() {
    results(
        48,
        |t| {
            if t == 3 {
                return 0;
            }
            if t.is_multiple_of(2) {
                cuda::active_mask()
            } else {
                let mask = cuda::active_mask();
                // The mask works for another operation of the same lanes.
                let sum = cuda::vote_ballot(mask, true);
                assert_eq!(sum, mask);
                mask
            }
        },
        |out| {
            for (t, &mask) in out.iter().enumerate() {
                let present = if t < 32 { FULL } else { 0xFFFF };
                let expected = match t {
                    3 => 0,
                    _ if t % 2 == 0 => 0x5555_5555 & present,
                    1..32 => 0xAAAA_AAA2,
                    _ => 0xAAAA & present,
                };
                assert_eq!(mask, expected, "thread {t}");
            }
        },
    );
}

#[test]
fn operations_of_a_warp_are_counted_once() {
    let memory = DeviceMemory::new();
    let report = launch(
        &config(3, 64),
        &cuda_emulator::Options::default(),
        &memory,
        &|| {
            cuda::warp_barrier(FULL);
            cuda::vote_any(FULL, true);
        },
    )
    .unwrap();
    assert_eq!(report.warp_operations, 3 * 2 * 2);
}

#[test]
fn a_caller_outside_its_mask() {
    must_fail(
        32,
        || cuda::warp_barrier(0xFFFF_FFFE),
        |diagnosis| {
            let Diagnosis::NotInMask { mask, lane, .. } = diagnosis else {
                // In every order lane 0 makes the call, and it is the only lane that is not in its
                // mask.
                panic!("{diagnosis}");
            };
            assert_eq!((*mask, *lane), (0xFFFF_FFFE, 0));
        },
    );
    must_pass(32, || {
        if tid() > 0 {
            cuda::warp_barrier(0xFFFF_FFFE);
        }
    });
}

#[test]
fn a_lane_of_the_mask_that_has_exited() {
    must_fail(
        64,
        || {
            if tid() == 40 {
                return;
            }
            cuda::vote_any(FULL, true);
        },
        |diagnosis| {
            let Diagnosis::WarpDivergence {
                at,
                mask,
                lane,
                doing,
                ..
            } = diagnosis
            else {
                panic!("{diagnosis}");
            };
            assert_eq!((*mask, *lane), (FULL, 8));
            assert_eq!(*doing, Doing::Exited);
            assert_eq!(at.thread, Some([32, 0, 0]));
            assert!(at.line.as_ref().unwrap().file.ends_with("warps.rs"));
        },
    );
    must_pass(64, || {
        if tid() == 40 {
            return;
        }
        let mask = if tid() < 32 { FULL } else { FULL & !(1 << 8) };
        cuda::vote_any(mask, true);
    });
}

#[test]
fn lanes_at_different_operations() {
    must_fail(
        32,
        || {
            if tid() < 16 {
                cuda::vote_any(FULL, true);
            } else {
                cuda::warp_barrier(FULL);
            }
        },
        |diagnosis| {
            let Diagnosis::WarpDivergence { doing, .. } = diagnosis else {
                panic!("{diagnosis}");
            };
            assert!(matches!(doing, Doing::InWarpOperation { .. }));
        },
    );
}

#[test]
fn lanes_with_different_masks() {
    must_fail(
        32,
        || {
            let mask = if tid() == 0 { FULL } else { 0xFFFF_FFFE };
            cuda::warp_barrier(mask);
        },
        |diagnosis| {
            // The other lanes agree and continue; lane 0 waits for them.
            let Diagnosis::WarpDivergence { at, .. } = diagnosis else {
                panic!("{diagnosis}");
            };
            assert_eq!(at.thread, Some([0, 0, 0]));
        },
    );
}

#[test]
fn the_same_operation_from_both_arms_is_allowed() {
    // PTX requires the same kind of instruction and the same mask, not the same line.
    must_pass(32, || {
        if tid() < 16 {
            cuda::vote_any(FULL, true);
        } else {
            cuda::vote_any(FULL, false);
        }
    });
}

#[test]
fn a_shuffle_from_outside_the_mask() {
    must_fail(
        32,
        || {
            if tid() < 16 {
                shuffle(0xFFFF, tid(), ShuffleKind::Down, 1, 32);
            }
        },
        |diagnosis| {
            let Diagnosis::ShuffleSource {
                at,
                lane,
                source_lane,
                reason,
                ..
            } = diagnosis
            else {
                panic!("{diagnosis}");
            };
            assert_eq!((*lane, *source_lane), (15, 16));
            assert_eq!(*reason, SourceMissing::OutsideMask);
            assert_eq!(at.thread, Some([15, 0, 0]));
        },
    );
    must_pass(32, || {
        if tid() < 16 {
            shuffle(0xFFFF, tid(), ShuffleKind::Down, 1, 16);
        }
    });
}

#[test]
fn a_shuffle_from_a_lane_the_block_does_not_have() {
    must_fail(
        48,
        || {
            shuffle(FULL, tid(), ShuffleKind::Down, 8, 32);
        },
        |diagnosis| {
            let Diagnosis::ShuffleSource {
                at,
                lane,
                source_lane,
                reason,
                ..
            } = diagnosis
            else {
                panic!("{diagnosis}");
            };
            assert_eq!((*lane, *source_lane), (8, 16));
            assert_eq!(*reason, SourceMissing::NotInBlock);
            assert_eq!(at.thread, Some([40, 0, 0]));
        },
    );
    must_pass(48, || {
        shuffle(FULL, tid(), ShuffleKind::Down, 8, 16);
    });
}

#[test]
fn a_shuffle_from_a_lane_that_has_exited() {
    must_fail(
        32,
        || {
            // At the end of the data: the last threads leave before the reduction.
            if tid() >= 30 {
                return;
            }
            shuffle(FULL, tid(), ShuffleKind::Down, 16, 32);
        },
        |diagnosis| {
            let Diagnosis::WarpDivergence { lane, doing, .. } = diagnosis else {
                panic!("{diagnosis}");
            };
            assert_eq!(*lane, 30);
            assert_eq!(*doing, Doing::Exited);
        },
    );
}

#[test]
fn a_width_that_is_no_power_of_two() {
    for width in [0, 3, 33, 64] {
        must_fail(
            32,
            || {
                shuffle(FULL, 0, ShuffleKind::Index, 0, width);
            },
            |diagnosis| {
                assert!(
                    matches!(diagnosis, Diagnosis::InvalidOperation { .. }),
                    "{diagnosis}"
                );
                assert!(diagnosis.to_string().contains(&format!("width {width}")));
            },
        );
    }
}
