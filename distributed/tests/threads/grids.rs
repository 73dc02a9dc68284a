//! Grids cut into blocks, and the ghost points around them.

use halo_distributed::{Decomposition, Error, Ghosted, Side, run};
use halo_gpu::Device;

/// Every point has one owner, whatever is cut.
#[test]
fn blocks_share_all_points() {
    for ranks in 1..=12 {
        let cuts = [
            Decomposition::slabs([5, 7, 13], ranks),
            Decomposition::pencils([5, 7, 13], ranks),
            Decomposition::least_surface([5, 7, 13], ranks),
        ];
        for cut in cuts {
            let cut = cut.expect("more planes than ranks");
            assert_eq!(cut.ranks(), ranks);
            let mut owners = vec![0; 5 * 7 * 13];
            for rank in 0..ranks {
                let block = cut.block(rank).expect("one of the ranks");
                let [x, y, z] = std::array::from_fn(|axis| {
                    block.start[axis]..block.start[axis] + block.extents[axis]
                });
                for (k, j, i) in z.flat_map(|k| {
                    let x = x.clone();
                    y.clone()
                        .flat_map(move |j| x.clone().map(move |i| (k, j, i)))
                }) {
                    owners[(k * 7 + j) * 5 + i] += 1;
                }
                for axis in 0..3 {
                    let above = cut.neighbour(rank, axis, Side::High).expect("an axis");
                    if let Some(above) = above {
                        let below = cut.neighbour(above, axis, Side::Low).expect("an axis");
                        assert_eq!(below, Some(rank));
                    }
                }
            }
            assert!(owners.iter().all(|&owners| owners == 1), "{cut:?}");
        }
    }
}

#[test]
fn the_least_surface_is_found() {
    let cut = |points, ranks| {
        let cut = Decomposition::least_surface(points, ranks);
        cut.expect("enough points").parts()
    };
    assert_eq!(cut([64, 64, 64], 8), [2, 2, 2]);
    assert_eq!(cut([64, 64, 64], 4), [1, 2, 2]);
    assert_eq!(cut([8, 8, 1024], 4), [1, 1, 4]);
    assert_eq!(cut([1024, 8, 8], 4), [4, 1, 1]);
    let pencils = Decomposition::pencils([1024, 8, 8], 4).expect("enough points");
    assert_eq!(pencils.parts(), [1, 2, 2]);
}

#[test]
fn more_ranks_than_planes_are_refused() {
    for refused in [
        Decomposition::slabs([9, 3], 4),
        Decomposition::new([9, 3], [1, 0]),
        Decomposition::new([9, 3], [10, 1]),
        Decomposition::least_surface([2, 3], 7),
        Decomposition::pencils([9, 3], 4),
        Decomposition::new([9, 3], [usize::MAX, 2]),
    ] {
        let refused = refused.expect_err("too few points");
        assert!(matches!(refused, Error::TooManyRanks { .. }), "{refused}");
    }
    let cut = Decomposition::slabs([9, 3], 3).expect("enough planes");
    assert!(matches!(cut.block(3), Err(Error::NoSuchRank { .. })));
    assert!(matches!(
        cut.periodic(2),
        Err(Error::InvalidParameter { .. })
    ));
}

/// After an exchange each ghost point has the value of the point that it is a copy of, in the
/// corners too.
fn ghosts_are_copies<const D: usize>(device: &Device, cut: Decomposition<D>, width: usize) {
    let points = cut.points();
    let number = |at: [usize; D]| -> i64 {
        let index = |above, axis: usize| above * points[axis] + at[axis];
        1 + (0..D).rev().fold(0, index) as i64
    };
    let checked = run(cut.ranks(), |communicator| {
        let mut field = Ghosted::new(&communicator, device, cut, width, number)?;
        let mut checked = 0;
        for _ in 0..2 {
            field.exchange(&communicator)?;
            let (block, ghosts, extents) = (field.block(), field.ghosts(), field.extents());
            for (element, found) in field.buffer().to_vec()?.into_iter().enumerate() {
                let mut left = element;
                let at: [usize; D] = std::array::from_fn(|axis| {
                    let here = left % extents[axis];
                    left /= extents[axis];
                    let before = points[axis] + block.start[axis] - ghosts[axis][0];
                    (before + here) % points[axis]
                });
                assert_eq!(found, number(at), "element {element} of {block:?}");
                checked += 1;
            }
        }
        let whole = field.gather(&communicator)?;
        assert!(whole.iter().copied().eq(1..=whole.len() as i64));
        Ok(checked)
    });
    let checked: usize = checked.expect("no rank fails").iter().sum();
    assert!(checked >= 2 * points.iter().product::<usize>());
}

#[test]
fn ghost_points_are_copies_on_every_device() {
    for device in [Device::cpu(), Device::emulator()] {
        for parts in [[1, 1], [1, 2], [2, 1], [3, 2], [1, 4], [7, 1]] {
            let cut = Decomposition::new([15, 9], parts).expect("enough points");
            for width in [1, 2] {
                ghosts_are_copies(&device, cut, width);
                let ring = cut.periodic(0).and_then(|cut| cut.periodic(1));
                ghosts_are_copies(&device, ring.expect("two axes"), width);
            }
        }
    }
}

/// Both neighbours of a rank are the same one; halos must not be swapped.
#[test]
fn two_ranks_on_a_ring_get_the_right_halos() {
    for axis in 0..3 {
        let mut parts = [1; 3];
        parts[axis] = 2;
        let cut = Decomposition::new([6, 5, 7], parts).expect("enough points");
        for width in [1, 2] {
            let ring = cut.periodic(axis).expect("an axis");
            ghosts_are_copies(&Device::cpu(), ring, width);
        }
    }
}

#[test]
fn fields_that_do_not_fit_are_refused() {
    let refused = |ranks: usize, parts, width: fn(usize) -> usize| {
        let cut = Decomposition::new([8, 5], parts).expect("enough points");
        let refused = run(ranks, |communicator| {
            let width = width(communicator.rank());
            let field = Ghosted::new(&communicator, &Device::cpu(), cut, width, |_| 0_u8);
            Ok(field.expect_err("it does not fit"))
        });
        refused.expect("all ranks learn it")
    };
    for error in refused(2, [1, 2], |_| 3) {
        // Blocks of 3 and 2 rows.
        assert!(error.to_string().contains("from 1 to 2"), "{error}");
    }
    for error in refused(2, [1, 2], |_| 0)
        .into_iter()
        .chain(refused(3, [1, 2], |_| 1))
    {
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    }
    for error in refused(2, [1, 2], |rank| 1 + rank) {
        assert!(matches!(error, Error::Disagreement { .. }), "{error}");
    }
}
