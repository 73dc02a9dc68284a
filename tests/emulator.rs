//! Tests that only the emulator can run: a device would refuse these launches, or they exceed the
//! emulator's default limits.

use halo_gpu::heat2d::Heat2d;
use halo_gpu::reduction::Reduction;
use halo_gpu::{AddressMode, Device, EmulatorOptions, Error, Field2, Limits, Shape2, Texture2d};

fn with_limits(change: impl FnOnce(&mut Limits)) -> Device {
    let mut limits = Limits::SM_90;
    change(&mut limits);
    Device::emulator_with(EmulatorOptions {
        limits,
        ..EmulatorOptions::default()
    })
}

#[test]
fn more_memory_than_there_is_is_an_error() {
    let device = Device::emulator();
    for bytes in [1_usize << 44, 1 << 50, isize::MAX as usize] {
        let refused = device.alloc_filled(bytes, 1_u8);
        assert!(
            matches!(refused, Err(Error::HostOutOfMemory { .. })),
            "{bytes}: {:?}",
            refused.err()
        );
    }
    let huge = with_limits(|limits| {
        limits.texture_2d.width = u32::MAX;
        limits.texture_2d.height = u32::MAX;
        limits.texture_2d.pitch_bytes = u32::MAX;
    });
    let refused = Texture2d::new(&huge, 1 << 29, 1 << 31, AddressMode::Clamp);
    assert!(
        matches!(refused, Err(Error::HostOutOfMemory { .. })),
        "{:?}",
        refused.err()
    );
}

#[test]
fn limits_that_no_device_has_are_errors() {
    let values = vec![1.0_f32; 1000];
    let no_grid = with_limits(|limits| limits.grid.x = 0);
    let buffer = no_grid.upload(&values).unwrap();
    for reduction in [
        Reduction::new(),
        Reduction::new().with_most_blocks(4).unwrap(),
    ] {
        let refused = reduction.plan(&no_grid).unwrap().sum(&buffer);
        assert!(
            matches!(refused, Err(Error::LaunchLimit { .. })),
            "{refused:?}"
        );
    }
    for alignment in [0, 1, 3, 33, u32::MAX - 3] {
        let odd = with_limits(|limits| limits.texture_2d.pitch_alignment = alignment);
        let texture = Texture2d::new(&odd, 5, 3, AddressMode::Clamp);
        assert!(
            texture.is_err(),
            "a pitch that is a multiple of {alignment}"
        );
    }
}

#[test]
fn the_steps_that_iterations_need_are_no_endless_loop() {
    let shape = Shape2::new(12, 12);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let initial = Field2::<f32>::from_fn(shape, |i, j| (3 * i + 7 * j) as f32).unwrap();
    let count = 3000;
    let device = Device::emulator_with(EmulatorOptions {
        step_limit: 2000,
        ..EmulatorOptions::default()
    });
    let emulated = heat.iterate_of(&device, &initial, count).unwrap();
    assert!(emulated == heat.iterate_of(&Device::cpu(), &initial, count).unwrap());
}
