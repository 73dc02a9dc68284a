//! roofline: the multiply-adds that measure a device are really done, and nothing
//! else is.

use halo_gpu::roofline::{MultiplyAdds, Real};
use halo_gpu::{Device, Error};
use halo_tests::{Bits, assert_same_bits, for_each, kernel_devices, ptx};

/// What thread `thread` must write after `fmas` multiply-adds on each of eight
/// chains.
fn expected_f32(thread: usize, fmas: u32) -> f32 {
    let mut sum = 0.0;
    for chain in 0..8 {
        let mut x = (thread * 8 + chain) as f32;
        for _ in 0..fmas {
            x = x.mul_add(0.999, 0.25);
        }
        sum += x;
    }
    sum
}

/// As [`expected_f32`].
fn expected_f64(thread: usize, fmas: u32) -> f64 {
    let mut sum = 0.0;
    for chain in 0..8 {
        let mut x = (thread * 8 + chain) as f64;
        for _ in 0..fmas {
            x = x.mul_add(0.999, 0.25);
        }
        sum += x;
    }
    sum
}

/// Rounds that are one, several and odd.
const ROUNDS: [u32; 3] = [1, 2, 5];

fn every_chain_is_computed<T: Real + Bits>(nan: T, expected: fn(usize, u32) -> T) {
    for device in kernel_devices() {
        for_each(T::KERNEL, ROUNDS, |rounds| {
            let work = MultiplyAdds::new(&device, rounds).unwrap();
            // 256 in a round, 32 of them on each of eight chains.
            let all = work.threads() as u64 * u64::from(rounds) * 256;
            assert_eq!(work.multiply_adds(), all);
            let mut sums = device.alloc_filled(work.threads(), nan).unwrap();
            work.run(&mut sums).unwrap();
            let expected: Vec<T> = (0..work.threads())
                .map(|thread| expected(thread, 32 * rounds))
                .collect();
            assert_same_bits(&sums.to_vec().unwrap(), &expected, |i| {
                format!("thread {i}")
            });
        });
    }
}

#[test]
fn roofline_fma_f32_computes_every_chain() {
    assert_eq!(<f32 as Real>::KERNEL, "roofline_fma_f32");
    every_chain_is_computed(f32::NAN, expected_f32);
}

#[test]
fn roofline_fma_f64_computes_every_chain() {
    assert_eq!(<f64 as Real>::KERNEL, "roofline_fma_f64");
    every_chain_is_computed(f64::NAN, expected_f64);
}

#[test]
fn bad_input_is_refused_by_name() {
    let device = Device::emulator();
    let error = MultiplyAdds::new(&device, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "roofline: the number of rounds is 0, but must be at least 1"
    );
    let work = MultiplyAdds::new(&device, 1).unwrap();
    let mut short = device.alloc_filled(work.threads() - 1, 0.0_f32).unwrap();
    assert!(matches!(
        work.run(&mut short),
        Err(Error::LengthMismatch { required, given, .. }) if given + 1 == required
    ));
    let cpu = Device::cpu();
    let mut sums = cpu.alloc_filled(work.threads(), 0.0_f64).unwrap();
    assert!(matches!(
        work.run(&mut sums),
        Err(Error::NotLaunchable {
            kernel: "roofline_fma_f64"
        })
    ));
}

#[test]
fn ptx_is_multiply_adds_and_a_loop() {
    for_each("ptx", ptx::TARGETS, |target| {
        for (kernel, ty) in [("roofline_fma_f32", "f32"), ("roofline_fma_f64", "f64")] {
            let body = ptx::entry(ptx::text(target), kernel);
            let count = |opcode: &str| ptx::count(&body, opcode);
            assert_eq!(count(&format!("fma.rn.{ty}")), 256, "{kernel} for {target}");
            assert_eq!(
                count("ld.global") + count("ld.local") + count("ld.shared"),
                0
            );
            assert_eq!((count("st.global"), count("mul"), count("bra")), (1, 1, 2));
        }
    });
}
