//! What all families share: shapes and fields, the geometry of launches, textures and
//! buffers. Also the errors for impossible sizes, up to and beyond all memory.

use halo_gpu::{
    AddressMode, Axis, Boundary, Buffer, Device, DeviceKind, Dim3, Error, Field2, Field3, Grid3,
    LaunchConfig, Limits, Shape2, Shape3, Texture2d, blocks_for, reduction,
};
use halo_tests::property::{self, Faults, device, extent, points_of, rarely};
use proptest::array::{uniform3, uniform4};
use proptest::prelude::*;

/// The most bytes of anything.
const MOST: u128 = isize::MAX as u128;

/// Whether so many elements of 8 bytes are few, or more than memory can ever be: others
/// might be really allocated.
fn few_or_too_many(points: u128) -> bool {
    points < 10_000 || 8 * points.min(MOST) > MOST
}

/// What is wrong with a field of so many points, of elements of so many bytes.
fn faults_of_field(name: &str, extents: &str, points: u128, bytes: u128) -> Faults {
    let words = format!("the size in bytes of a buffer is {points} * ");
    let countable = points <= usize::MAX as u128;
    Faults::none()
        .and(
            !countable,
            "IndexOverflow",
            format!("{name} is {extents}, but at most"),
        )
        .and(countable && bytes * points > MOST, "IndexOverflow", words)
}

/// An extent of a grid or a block: around each of the limits.
fn launch_extent() -> impl Strategy<Value = u32> {
    prop_oneof![
        24 => 1..11_u32,
        1 => Just(0),
        1 => 60..70_u32,
        1 => 1000..1030_u32,
        1 => 65_530..65_540_u32,
        1 => any::<u32>(),
    ]
}

fn dim3() -> impl Strategy<Value = Dim3> {
    uniform3(launch_extent()).prop_map(|[x, y, z]| Dim3::new(x, y, z))
}

/// A boundary, now and then one with a value that is not a number.
fn boundary() -> impl Strategy<Value = Boundary> {
    prop_oneof![
        Just(Boundary::Periodic),
        Just(Boundary::PeriodicWithEndpoint),
        (-5.0..5.0_f64).prop_map(Boundary::Dirichlet),
        Just(Boundary::Dirichlet(f64::NAN)),
        Just(Boundary::Dirichlet(f64::NEG_INFINITY)),
        Just(Boundary::Neumann),
        Just(Boundary::NeumannHalfway),
        Just(Boundary::OneSided),
    ]
}

/// What is wrong with a boundary's value.
fn faults_of_value(boundary: Boundary) -> Faults {
    let value = match boundary {
        Boundary::Dirichlet(value) => value,
        _ => 0.0,
    };
    let words = format!("the value of a Dirichlet boundary is {value}, but must be a finite");
    Faults::none().and(!value.is_finite(), "NonFinite", words)
}

proptest! {
    #![proptest_config(property::cases(256))]

    #[test]
    fn grids_get_the_error_they_deserve(
        extents in uniform3(extent(0..20)),
        spacing in uniform3(prop_oneof![
            6 => 1e-3..1e3_f64,
            1 => Just(0.0),
            1 => -1.0..0.0_f64,
            1 => Just(f64::NAN),
            1 => Just(f64::INFINITY),
        ]),
        (all, ends) in (boundary(), [boundary(), boundary()]),
    ) {
        let [nx, ny, nz] = extents;
        let words = format!("nx * ny * nz is {nx} * {ny} * {nz}, but at most");
        let countable = points_of(extents) <= usize::MAX as u128;
        let mut faults = Faults::none().and(!countable, "IndexOverflow", words);
        for (axis, (n, h)) in ["x", "y", "z"].into_iter().zip(extents.into_iter().zip(spacing)) {
            let spacing = format!("spacing along {axis} is {h}, but must be");
            faults = faults
                .and(n == 0, "InvalidSize", format!("n{axis} is 0, but must be at least 1"))
                .and(!h.is_finite(), "NonFinite", spacing.clone())
                .and(h <= 0.0 && h.is_finite(), "InvalidParameter", spacing);
        }
        let Some(grid) = faults.judge(Grid3::new(Shape3::new(nx, ny, nz), spacing))? else {
            return Ok(());
        };

        let everywhere = faults_of_value(all).judge(grid.with_boundaries(all))?;
        for (axis, grid) in Axis::ALL.into_iter().zip(everywhere.into_iter().cycle()) {
            prop_assert_eq!(grid.ends(axis), [all; 2]);
        }

        let [low, high] = ends;
        let differ = (low.is_periodic() || high.is_periodic()) && low != high;
        let words = format!("boundary along y is {low} at one end and {high} at the other, but");
        let faults = Faults::none()
            .and(differ, "InvalidParameter", words)
            .with(faults_of_value(low))
            .with(faults_of_value(high));
        if let Some(grid) = faults.judge(grid.with_ends(Axis::Y, ends))? {
            prop_assert_eq!(grid.ends(Axis::Y), ends);
            let intervals = extents.map(|n| n - 1);
            let intervals = [nx, intervals[1] + usize::from(low == Boundary::Periodic), nz];
            let words = "must be at least 2 to have a length";
            let pointless = intervals.contains(&0);
            let faults = Faults::none().and(pointless, "InvalidSize", words.to_owned());
            if let Some(unit) = faults.judge(grid.of_unit_length())? {
                for (axis, n) in Axis::ALL.into_iter().zip(intervals) {
                    prop_assert_eq!(unit.spacing(axis), 1.0 / n as f64);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(property::cases(256))]

    #[test]
    fn planes_get_the_error_they_deserve(
        (nx, ny) in (extent(0..20), extent(0..20)),
        more in rarely(4),
    ) {
        let shape = Shape2::new(nx, ny);
        let points = nx as u128 * ny as u128;
        let extents = format!("{nx} * {ny}");
        let faults = |bytes| faults_of_field("nx * ny", &extents, points, bytes);
        // Bytes do not matter to what only counts.
        let counted = faults(0).judge(shape.points())?;
        prop_assert!(counted.is_none_or(|counted| counted as u128 == points));
        if few_or_too_many(points) {
            let filled = faults(8).judge(Field2::filled(shape, 1.0_f64))?;
            let made = faults(8).judge(Field2::from_fn(shape, |i, j| (i, j)))?;
            if let (Some(filled), Some(made)) = (filled, made) {
                prop_assert_eq!(filled.as_slice().len() as u128, points);
                prop_assert_eq!(made.shape(), shape);
            }
        }
        let len = if points < 10_000 { points as usize } else { 7 } + usize::from(more);
        let words = format!("the data of a Field2 has {len} elements, but must have {points}");
        let faults = faults(0).and(len as u128 != points, "LengthMismatch", words);
        faults.judge(Field2::from_vec(shape, vec![0_u8; len]))?;
        for (i, j) in [(nx, 0), (0, ny), (usize::MAX, usize::MAX)] {
            prop_assert_eq!(shape.index(i, j), None);
        }
    }

    #[test]
    fn solids_get_the_error_they_deserve(
        extents in uniform3(extent(0..20)),
        more in rarely(4),
    ) {
        let [nx, ny, nz] = extents;
        let shape = Shape3::new(nx, ny, nz);
        let points = points_of(extents);
        let extents = format!("{nx} * {ny} * {nz}");
        let faults = |bytes| faults_of_field("nx * ny * nz", &extents, points, bytes);
        let counted = faults(0).judge(shape.points())?;
        prop_assert!(counted.is_none_or(|counted| counted as u128 == points));
        if few_or_too_many(points) {
            let filled = faults(8).judge(Field3::filled(shape, 1.0_f64))?;
            let made = faults(8).judge(Field3::from_fn(shape, |i, j, k| (i + j + k) as f64))?;
            if let (Some(filled), Some(made)) = (filled, made) {
                prop_assert_eq!(filled.as_slice().len() as u128, points);
                prop_assert_eq!(made.shape(), shape);
            }
        }
        let len = if points < 10_000 { points as usize } else { 7 } + usize::from(more);
        let words = format!("the data of a Field3 has {len} elements, but must have {points}");
        let faults = faults(0).and(len as u128 != points, "LengthMismatch", words);
        faults.judge(Field3::from_vec(shape, vec![0_u8; len]))?;
        let most = usize::MAX;
        for (i, j, k) in [(nx, 0, 0), (0, ny, 0), (0, 0, nz), (most, most, most)] {
            prop_assert_eq!(shape.index(i, j, k), None);
        }
    }

    #[test]
    fn launches_get_the_error_they_deserve(
        (grid, block) in (dim3(), dim3()),
        dynamic in prop_oneof![2 => 0..4096_u32, 1 => 232_000..233_000_u32, 1 => any::<u32>()],
        smaller in proptest::option::weighted(0.3, uniform4(1..2000_u32)),
    ) {
        let mut limits = Limits::SM_90;
        if let Some([x, y, threads, shared]) = smaller {
            (limits.grid.x, limits.block.y) = (x, y);
            (limits.threads_per_block, limits.shared_bytes_opt_in) = (threads, shared);
        }
        let config = LaunchConfig::new(grid, block).with_dynamic_shared_bytes(dynamic);
        let names = ["x", "y", "z"];
        let extents = [("grid", grid, limits.grid), ("block", block, limits.block)];
        let mut faults = Faults::none();
        for (what, given, most) in extents {
            let extents = given.to_array().into_iter().zip(most.to_array());
            for (name, (given, most)) in names.into_iter().zip(extents) {
                let words = format!("{what}.{name} is {given}, but must be at least 1 and at most {most}");
                faults = faults.and(!(1..=most).contains(&given), "LaunchLimit", words);
            }
        }
        let threads = block.to_array().into_iter().map(u128::from).product::<u128>();
        let most = limits.threads_per_block;
        let words = format!("threads per block is {threads}, but must be at most {most}");
        let faults = faults
            .and(threads > u128::from(most), "LaunchLimit", words)
            .and(
                dynamic > limits.shared_bytes_opt_in,
                "LaunchLimit",
                format!("shared memory per block in bytes is {dynamic}, but must be at most"),
            );
        faults.judge(config.check("some_kernel", &limits))?;
        // u32 six times is more than u128 has.
        let blocks = grid.to_array().into_iter().map(u128::from).product::<u128>();
        prop_assert_eq!(config.threads(), blocks.saturating_mul(threads));
    }

    #[test]
    fn blocks_are_counted_or_refused(points in extent(0..4000), per_group in extent(0..100)) {
        let groups = points.checked_div(per_group).map(|whole| {
            whole + usize::from(!points.is_multiple_of(per_group))
        });
        let too_many = groups.is_some_and(|groups| u32::try_from(groups).is_err());
        let words = format!(" for {points} points, but at most");
        let faults = Faults::none()
            .and(per_group == 0, "InvalidParameter", "the number of points per block is 0")
            .and(too_many, "IndexOverflow", words);
        if let Some(blocks) = faults.judge(blocks_for("some_kernel", points, per_group))? {
            prop_assert_eq!(Some(blocks as usize), groups);
        }
        prop_assert_eq!(reduction::Reduction::new().cost::<f64>(points).bytes, (points as u64).saturating_mul(8));
    }

    #[test]
    fn textures_get_the_error_they_deserve(
        (width, height) in (
            prop_oneof![2 => extent(1..40), 1 => 131_070..131_080_usize],
            prop_oneof![2 => extent(1..40), 1 => 64_990..65_010_usize],
        ),
        lengths in [rarely(4), rarely(4)],
        border in any::<bool>(),
        device in device(),
    ) {
        let most = device.limits().texture_2d;
        let mut faults = Faults::none();
        for (name, given, most) in [("width", width, most.width), ("height", height, most.height)] {
            let words = format!("{name} is {given}, but must be at least 1 and at most {most}");
            faults = faults.and(given == 0 || given > most as usize, "InvalidSize", words);
        }
        let faults = faults.and(
            device.kind() == DeviceKind::Cpu,
            "NotLaunchable",
            "Texture2d: the cpu device",
        );
        // Not those that are refused by nothing but memory.
        prop_assume!(!faults.is_empty() || width as u128 * height as u128 <= 6_000_000);
        let mode = if border { AddressMode::Border } else { AddressMode::Clamp };
        let Some(texture) = faults.judge(Texture2d::new(&device, width, height, mode))? else {
            return Ok(());
        };
        prop_assert_eq!((texture.width(), texture.height()), (width, height));
        prop_assert!(texture.pitch() >= width && texture.address_mode() == mode);
        let len = width * height + usize::from(lengths[0]) - usize::from(lengths[1]);
        let words = format!("has {len} elements, but must have {}", width * height);
        let faults = Faults::none().and(len != width * height, "LengthMismatch", words);
        let values = vec![1.0; len];
        let made = Texture2d::from_slice(&device, width, height, mode, &values);
        if let Some(texture) = faults.judge(made)? {
            prop_assert!(texture.to_vec()? == values);
        }
    }

    #[test]
    fn buffers_get_the_error_they_deserve(
        len in extent(0..40).prop_filter("memory", |&len| few_or_too_many(len as u128)),
        other in 0..40_usize,
        away in rarely(4),
        device in device(),
    ) {
        let faults = faults_of_field("", "", len as u128, 8);
        let Some(mut buffer) = faults.judge(device.alloc_filled(len, 1.5_f64))? else {
            return Ok(());
        };
        prop_assert_eq!((buffer.len(), buffer.is_empty()), (len, len == 0));
        let words = format!("has {other} elements, but must have {len}");
        let faults = Faults::none().and(other != len, "LengthMismatch", words);
        let mut values = vec![2.5; other];
        faults.judge(buffer.copy_to_slice(&mut values))?;
        let expected = if other == len { 1.5 } else { 2.5 };
        prop_assert!(values.iter().all(|&it| it == expected));
        faults.judge(buffer.copy_from_slice(&values))?;
        let elsewhere = Device::emulator();
        let source = if away { &elsewhere } else { &device }.alloc_filled(other, 3.5)?;
        let everywhere = faults.clone();
        let faults = faults.and(away, "DeviceMismatch", "is on");
        let copied: Result<(), Error> = buffer.copy_from(&source);
        faults.judge(copied)?;
        let expected = if faults.is_empty() { 3.5 } else { 1.5 };
        prop_assert!(buffer.to_vec()?.iter().all(|&it| it == expected));
        // Also from another device.
        everywhere.judge(buffer.copy_across(&source))?;
        let expected = if everywhere.is_empty() { 3.5 } else { 1.5 };
        prop_assert!(buffer.to_vec()?.iter().all(|&it| it == expected));
    }

    #[test]
    fn buffers_with_a_shape_get_the_error_they_deserve(
        (nx, ny, nz) in (0..5_usize, 0..5_usize, 0..5_usize),
        other in uniform3(extent(0..5)),
        away in rarely(4),
        device in device(),
    ) {
        let plane = Field2::filled(Shape2::new(nx, ny), 1.5_f64)?;
        let solid = Field3::filled(Shape3::new(nx, ny, nz), 2.5_f64)?;
        let (flat, deep) = (plane.to_device(&device)?, solid.to_device(&device)?);
        let faults = |is: &Buffer<f64>, wanted: &str, right: bool| {
            let words = format!("the buffer has the shape {}, but must have {wanted}", is.shape());
            Faults::none().and(!right, "ShapeMismatch", words)
        };
        for (buffer, is_plane) in [(&flat, true), (&deep, false)] {
            let got = faults(buffer, "nx × ny", is_plane).judge(Field2::from_device(buffer))?;
            prop_assert!(got.is_none_or(|got| got == plane));
            let got = faults(buffer, "nx × ny × nz", !is_plane).judge(Field3::from_device(buffer))?;
            prop_assert!(got.is_none_or(|got| got == solid));
        }

        let mut copy = deep.try_clone()?;
        copy.fill(3.5)?;
        prop_assert!(copy.to_vec()?.iter().all(|&it| it == 3.5));
        prop_assert!(deep.to_vec()?.iter().all(|&it| it == 2.5));
        let elsewhere = Device::emulator();
        let words = "but the operation runs on emulator";
        let faults = Faults::none().and(away, "DeviceMismatch", words);
        faults.judge(if away { &elsewhere } else { &device }.require("the field", &copy))?;

        let [x, y, z] = other;
        let (points, len) = (points_of(other), copy.len() as u128);
        let countable = points <= usize::MAX as u128;
        let faults = Faults::none()
            .and(!countable, "IndexOverflow", "nx * ny * nz is")
            .and(countable && points != len, "LengthMismatch", format!("has {len} elements, but"));
        let shape = Shape3::new(x, y, z);
        if let Some(shaped) = faults.judge(copy.shaped(shape))? {
            prop_assert_eq!(shaped.shape(), shape.into());
        }
    }

    #[test]
    fn views_get_the_error_they_deserve(
        len in 0..40_usize,
        (start, end) in (extent(0..40), extent(0..40)),
        (from, other) in (0..40_usize, 0..40_usize),
        away in rarely(4),
        device in device(),
    ) {
        let numbers: Vec<f64> = (0..len).map(|number| number as f64).collect();
        let mut buffer = device.upload(&numbers)?;
        let faults = Faults::none().and(
            start > end || end > len,
            "InvalidParameter",
            format!("within 0..{len}"),
        );
        let seen = faults.judge(buffer.view(start..end))?;
        prop_assert!(seen.is_none_or(|view| view.len() == end - start));
        // The same range by its last element.
        let last = end.checked_sub(1).filter(|_| start <= end);
        if let Some(last) = last {
            faults.judge(buffer.view_mut(start..=last))?;
        }
        let Some(mut view) = faults.judge(buffer.view_mut(start..end))? else {
            return Ok(());
        };
        let part = &numbers[start..end];
        prop_assert_eq!(view.as_view().to_vec()?, part);
        let words = format!("has {other} elements, but must have {}", part.len());
        let faults = Faults::none().and(other != part.len(), "LengthMismatch", words);
        let mut values = vec![-1.0; other];
        faults.judge(view.as_view().copy_to_slice(&mut values))?;
        prop_assert!(values == part || !faults.is_empty() && values.iter().all(|&it| it == -1.0));
        faults.judge(view.copy_from_slice(&vec![-2.0; other]))?;
        let mut expected = numbers.clone();
        if faults.is_empty() {
            expected[start..end].fill(-2.0);
        }
        prop_assert_eq!(view.as_view().to_vec()?, &expected[start..end]);

        let elsewhere = Device::emulator();
        let source = if away { &elsewhere } else { &device };
        let values: Vec<f64> = (0..from + other).map(|number| 0.5 + number as f64).collect();
        let source = source.upload(&values)?;
        let everywhere = faults.clone();
        let faults = faults.and(away, "DeviceMismatch", "is on");
        let copied = view.copy_from(source.view(from..)?);
        faults.judge(copied)?;
        if faults.is_empty() {
            expected[start..end].copy_from_slice(&values[from..]);
        }
        prop_assert_eq!(view.as_view().to_vec()?, &expected[start..end]);
        everywhere.judge(view.copy_across(source.view(from..)?))?;
        if everywhere.is_empty() {
            expected[start..end].copy_from_slice(&values[from..]);
        }
        prop_assert_eq!(buffer.to_vec()?, &expected[..]);
        // As bytes, and from a sealed buffer of any device.
        let words = format!("has {} elements, but must have {}", 8 * other, 8 * part.len());
        let everywhere = Faults::none().and(other != part.len(), "LengthMismatch", words);
        let faults = everywhere.clone().and(away, "DeviceMismatch", "is on");
        buffer.view_mut(start..end)?.fill(8.0)?;
        let mut view = buffer.view_mut(start..end)?;
        let of_bytes = view.copy_bytes_from(source.view(from..)?);
        faults.judge(of_bytes)?;
        let right = if faults.is_empty() { &values[from..] } else { &vec![8.0; end - start] };
        prop_assert_eq!(view.as_view().to_vec()?, right);
        let mut sealed = source.device().upload(&values[from..])?.seal()?;
        view.fill(8.0)?;
        everywhere.judge(view.copy_from_sealed(&mut sealed))?;
        if everywhere.is_empty() {
            prop_assert_eq!(view.as_view().to_vec()?, &values[from..]);
        }
        prop_assert_eq!(sealed.open()?.to_vec()?, &values[from..]);
        buffer.view_mut(start..end)?.fill(9.0)?;
        expected[start..end].fill(9.0);
        prop_assert_eq!(buffer.to_vec()?, expected);
    }

    #[test]
    fn rows_of_views_get_the_error_they_deserve(
        lengths in [0..40_usize, 0..40],
        rows in 0..5_usize,
        row in 0..9_usize,
        pitches in [0..14_usize, 0..14],
        far in rarely(10),
        away in rarely(10),
        device in device(),
    ) {
        let elsewhere = Device::emulator();
        let owner = if away { &elsewhere } else { &device };
        let values: Vec<u8> = (100..).take(lengths[1]).collect();
        let source = owner.upload(&values)?;
        let mut target = device.alloc_filled(lengths[0], 7_u8)?;
        let pitches = if far { [pitches[0], usize::MAX / 2] } else { pitches };
        let fits = |pitch: usize, len: usize| match rows {
            1 => row <= len,
            _ => row <= pitch && pitch <= len && (rows - 1) * pitch + row <= len,
        };
        let none = rows * row == 0;
        let fit = none || fits(pitches[0], lengths[0]) && fits(pitches[1], lengths[1]);
        let faults = Faults::none()
            .and(!fit, "InvalidParameter", "without overlap and within the view's")
            .and(away, "DeviceMismatch", "is on");
        let copied = target.view_mut(..)?.copy_rows_from(source.view(..)?, [rows, row], pitches);
        faults.judge(copied)?;
        let mut expected = vec![7; lengths[0]];
        if faults.is_empty() && !none {
            for at in 0..rows {
                let [to, from] = pitches.map(|pitch| at * pitch);
                expected[to..to + row].copy_from_slice(&values[from..from + row]);
            }
        }
        prop_assert_eq!(target.to_vec()?, expected);
    }

    #[test]
    fn memory_of_the_host_gets_the_error_it_deserves(
        len in extent(0..40).prop_filter("memory", |&len| few_or_too_many(len as u128)),
        other in 0..40_usize,
        away in rarely(4),
        device in device(),
    ) {
        let faults = faults_of_field("", "", len as u128, 8);
        faults.judge(device.zeros::<f64>(len))?;
        let Some(mut host) = faults.judge(device.alloc_host::<f64>(len))? else {
            return Ok(());
        };
        prop_assert_eq!((host.len(), host.is_empty()), (len, len == 0));
        prop_assert!(host.as_slice()?.iter().all(|&it| it == 0.0));
        host.as_mut_slice()?.fill(1.5);
        let elsewhere = Device::emulator();
        let mut buffer = if away { &elsewhere } else { &device }.alloc_filled(other, 2.5)?;
        let words = format!("has {len} elements, but must have {other}");
        let faults = Faults::none()
            .and(other != len, "LengthMismatch", words)
            .and(away, "DeviceMismatch", "is on");
        let loaded = buffer.copy_from_host(&host);
        faults.judge(loaded)?;
        let expected = if faults.is_empty() { 1.5 } else { 2.5 };
        prop_assert!(buffer.to_vec()?.iter().all(|&it| it == expected));
        buffer.fill(3.5)?;
        faults.judge(buffer.copy_to_host(&mut host))?;
        let expected = if faults.is_empty() { 3.5 } else { 1.5 };
        prop_assert!(host.as_slice()?.iter().all(|&it| it == expected));
    }

    /// After an error the work does not run again.
    #[test]
    fn work_that_fails_is_given_up_with_its_error(
        (runs, count, warmup) in (1..9_usize, 0..3_usize, 0..3_usize),
        device in device(),
    ) {
        let mut left = runs;
        let mut work = || {
            left = left.checked_sub(1).ok_or(Error::EmptyInput { operation: "work" })?;
            Ok(())
        };
        let fails = |needed: usize| Faults::none().and(runs < needed, "EmptyInput", "work");
        let needed = warmup + count;
        let times = fails(needed).judge(device.time_each(warmup, count, &mut work))?;
        prop_assert!(times.is_none_or(|times| times.len() == count));
        prop_assert_eq!(left, runs.saturating_sub(needed));

        let mut left = runs;
        let recorded = device.record(count, || {
            left = left.checked_sub(1).ok_or(Error::EmptyInput { operation: "work" })?;
            Ok(())
        });
        // Once; on a CUDA device as often as it is recorded, too.
        let needed = 1 + if device.kind() == DeviceKind::Cuda { count } else { 0 };
        fails(needed).judge(recorded.map(|_| ()))?;
        prop_assert_eq!(left, runs.saturating_sub(needed));
    }
}
