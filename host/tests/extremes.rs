//! Sizes at the very end of what is legal: what is computed from them neither wraps
//! nor panics, and memory that nobody has is an error and no abort.

#[cfg(target_os = "linux")]
mod child;

use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Variant};
use halo_gpu::heat2d::Heat2d;
use halo_gpu::nbody::problem::{Cluster, Disc};
use halo_gpu::nbody::{Gravity, MAX_BODIES};
use halo_gpu::stencil1d::Stencil1d;
use halo_gpu::{Axis, Cost, Device, Error, Field2, Field3, Grid3, Shape2, Shape3, reduction};

fn derivatives(shape: Shape3) -> FiniteDifferences3d<f32> {
    Grid3::new(shape, [1.0; 3])
        .and_then(|grid| FiniteDifferences3d::new(&grid))
        .expect("a legal shape")
}

fn operators() -> impl Iterator<Item = Operator> {
    let along = Axis::ALL.into_iter();
    along
        .flat_map(|axis| [Operator::Derivative(axis), Operator::SecondDerivative(axis)])
        .chain(Operator::VECTOR_CALCULUS)
}

#[test]
fn bytes_and_operations_saturate() {
    for shape in [
        Shape3::new(usize::MAX, 1, 1),
        Shape3::new(1, usize::MAX, 1),
        Shape3::new(1, 1, usize::MAX),
    ] {
        let differences = derivatives(shape);
        let plan = differences
            .plan(&Device::emulator())
            .expect("a legal shape");
        for operator in operators() {
            let most = Cost {
                bytes: u64::MAX,
                flops: u64::MAX,
            };
            assert_eq!(differences.cost(operator), most, "{operator}");
            assert!(plan.kernel(operator).is_some(), "{operator}");
            let _ = plan.check(operator);
        }
    }
    let most = Cost {
        bytes: u64::MAX,
        flops: u64::MAX,
    };
    let line = Stencil1d::antisymmetric(usize::MAX, &[1.0_f32; 4]).expect("a legal length");
    assert_eq!(line.cost(), most);
    let line = Stencil1d::symmetric(usize::MAX, 1.0_f64, &[1.0; 8]).expect("a legal length");
    assert_eq!(line.cost(), most);
    let line = Stencil1d::antisymmetric(usize::MAX, &[1.0_f32]).expect("a legal length");
    assert_eq!(line.cost(), most);
    let cost = reduction::Reduction::new().cost::<f64>(usize::MAX);
    assert_eq!((cost.bytes, cost.flops), (u64::MAX, usize::MAX as u64 - 1));
    let cost = Gravity::new(0.1)
        .expect("a softening")
        .cost::<f64>(usize::MAX);
    assert_eq!((cost.bytes, cost.flops), (u64::MAX, u64::MAX));
}

#[cfg(target_pointer_width = "64")]
#[test]
fn the_largest_plate_has_more_bytes_than_can_be_counted() {
    let extent = i32::MAX as usize;
    let heat = Heat2d::dirichlet(Shape2::new(extent, extent)).expect("a legal shape");
    let cost = heat.cost::<f64>();
    // 4 · (2³¹ - 3)² is still below 2⁶⁴.
    assert_eq!(
        (cost.bytes, cost.flops),
        (u64::MAX, 4 * (extent as u64 - 2).pow(2))
    );
}

#[test]
fn what_fits_is_counted_as_it_is() {
    let shape = Shape3::new(5, 7, 11);
    let differences = derivatives(shape);
    let costs: Vec<(u64, u64)> = operators()
        .map(|operator| differences.cost(operator))
        .map(|Cost { bytes, flops }| (bytes / 385, flops / 385))
        .collect();
    let (first, second) = ((8, 11), (8, 19));
    let vector_calculus = [(16, 33), (16, 35), (24, 69), (8, 59)];
    let along = [first, second, first, second, first, second];
    assert_eq!(costs, [&along[..], &vector_calculus].concat());
    assert_eq!(reduction::Reduction::new().cost::<f64>(3).bytes, 24);
}

#[test]
fn strides_and_tiles_saturate() {
    let huge = Shape3::new(usize::MAX, usize::MAX, usize::MAX);
    assert_eq!(
        Axis::ALL.map(|axis| axis.stride(huge)),
        [1, usize::MAX, usize::MAX]
    );
    assert_eq!(
        Axis::ALL.map(|axis| axis.stride(Shape3::new(5, 7, 11))),
        [1, 5, 35]
    );
    let tiles: Vec<[usize; 2]> = Axis::ALL
        .into_iter()
        .flat_map(|axis| Variant::ALL.map(|it| it.tile(axis, huge)))
        .flatten()
        .collect();
    assert_eq!(tiles.len(), 6);
    for tile in tiles {
        assert!(tile.contains(&usize::MAX), "{tile:?}");
    }
}

/// As many bytes as Rust lets a vector have, half an address space: nobody has them.
#[cfg(target_pointer_width = "64")]
const NOBODY_HAS: usize = isize::MAX as usize / 8;

#[cfg(target_pointer_width = "64")]
#[test]
fn memory_that_nobody_has_is_an_error() {
    fn refused<T>(result: Result<T, Error>) -> u64 {
        match result.map(drop).expect_err("nobody has that much") {
            Error::HostOutOfMemory { requested } => requested,
            error => panic!("{error:?}"),
        }
    }
    let bytes = 8 * NOBODY_HAS as u64;
    for device in [Device::cpu(), Device::emulator()] {
        assert!(refused(device.alloc_filled(NOBODY_HAS, 0.0_f64)) >= bytes);
    }
    let line = Shape3::new(NOBODY_HAS, 1, 1);
    assert_eq!(refused(Field3::filled(line, 0.0_f64)), bytes);
    assert_eq!(refused(Field3::from_fn(line, |_, _, _| 0.0_f64)), bytes);
    let line = Shape2::new(NOBODY_HAS, 1);
    assert_eq!(refused(Field2::filled(line, 0.0_f64)), bytes);
    let error = Device::cpu().alloc_filled(NOBODY_HAS, 0.0_f64);
    assert_eq!(
        error.expect_err("nobody has that much").to_string(),
        format!("out of memory on the host: {bytes} bytes were requested")
    );
}

/// A cluster that does not fit into memory, in a process with a low limit.
#[cfg(target_os = "linux")]
#[test]
fn a_cluster_that_memory_does_not_hold_is_an_error() {
    const NAME: &str = "a_cluster_that_memory_does_not_hold_is_an_error";
    if child::is(NAME) {
        let disc = Disc {
            bodies: MAX_BODIES - 1,
            center: 1.0,
            mass: 0.1,
            inner: 1.0,
            outer: 2.0,
        };
        let gravity = Gravity::new(0.1).expect("a softening");
        for result in [
            Cluster::<f32>::plummer(MAX_BODIES, 1).map(drop),
            Cluster::<f64>::plummer(MAX_BODIES, 1).map(drop),
            Cluster::<f32>::cold_disc(&gravity, &disc).map(drop),
        ] {
            let error = result.expect_err("4 GiB are not enough");
            assert!(matches!(error, Error::HostOutOfMemory { .. }), "{error:?}");
        }
        let error = Cluster::<f32>::plummer(MAX_BODIES + 1, 1).map(drop);
        assert!(
            matches!(error, Err(Error::IndexOverflow { .. })),
            "{error:?}"
        );
        return;
    }
    child::passes(
        NAME,
        std::process::Command::new("sh")
            .arg("-c")
            .arg("ulimit -v 4194304 && exec \"$0\" --exact \"$1\" --nocapture")
            .arg(std::env::current_exe().expect("the path of this test"))
            .arg(NAME),
    );
}
