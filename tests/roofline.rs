//! roofline: the multiply-adds that measure a device are really done, and nothing
//! else is.

use halo_gpu::roofline::{MultiplyAdds, Real};
use halo_gpu::{Device, Error};
use halo_tests::{for_each, ptx};

/// Of the 256, 32 are on each of eight chains.
#[test]
fn a_round_is_256_multiply_adds_per_thread() {
    let device = Device::emulator();
    for_each("rounds", [1, 2, 5], |rounds| {
        let work = MultiplyAdds::new(&device, rounds).unwrap();
        let all = work.threads() as u64 * u64::from(rounds) * 256;
        assert_eq!(work.multiply_adds(), all);
    });
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

/// The launch has whole blocks, so that a sum for each thread is all that it writes.
#[test]
fn a_launch_through_the_bound_checks_its_sums() {
    fn through<T: Real>(device: &Device, zero: T) {
        let mut sums = device.alloc_filled(100, zero).unwrap();
        assert!(matches!(
            T::launch(1, 1, &mut sums),
            Err(Error::LengthMismatch {
                required: 256,
                given: 100,
                ..
            })
        ));
    }
    let device = Device::emulator();
    through(&device, 0.0_f32);
    through(&device, 0.0_f64);
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
