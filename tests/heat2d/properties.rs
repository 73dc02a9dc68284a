//! Properties of a plate of any shape, with any boundaries and any source, to the last bit; and the
//! errors for invalid plates.

use super::boundaries::{DIRICHLET, Ends, NEUMANN, ends, half, heat2d, is_kept};
use super::point;
use halo_gpu::Scalar;
use halo_gpu::heat2d::{Heat2d, Variant, problem};
use halo_gpu::{Axis, Cost, Device, DeviceKind, Error, Field2, Shape2};
use halo_tests::property::{self, Faults, awkward, device, extent, rarely};
use halo_tests::{Bits, assert_same_bits};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Some fields of one shape, and boundaries for it.
#[derive(Debug, Clone)]
struct Fields {
    shape: Shape2,
    ends: Ends,
    fields: Vec<Vec<f32>>,
}

impl Fields {
    /// A field, in another type of temperature.
    fn get<T: Scalar>(&self, nth: usize) -> Vec<T> {
        self.fields[nth].iter().map(|&it| T::from(it)).collect()
    }

    /// Swept from `initial`, with `source` if there is one.
    fn swept<T: Scalar>(
        &self,
        device: &Device,
        initial: &[T],
        source: Option<&[T]>,
        iterations: usize,
    ) -> Result<Vec<T>, Error> {
        swept(device, self.shape, self.ends, initial, source, iterations)
    }
}

/// So many fields of numbers from `element`.
fn fields(
    element: impl Strategy<Value = f32> + Clone + 'static,
    count: usize,
) -> impl Strategy<Value = Fields> {
    (3..18_usize, 3..18_usize, 0..16_u32).prop_flat_map(move |(nx, ny, bits)| {
        vec(vec(element.clone(), nx * ny), count).prop_map(move |fields| Fields {
            shape: Shape2::new(nx, ny),
            ends: ends(bits),
            fields,
        })
    })
}

/// Whole numbers so small that seven iterations of them are exact in f32: sums of at most 9
/// bits before the point, and 2 more behind it from each iteration.
fn whole() -> impl Strategy<Value = f32> + Clone {
    (-8..=8_i32).prop_map(|it| it as f32)
}

/// Numbers of any size that leaves room for sums of four and more.
fn any_size() -> impl Strategy<Value = f32> + Clone {
    (-1.0..1.0_f32, -60..60_i32).prop_map(|(mantissa, exponent)| mantissa * 2.0_f32.powi(exponent))
}

/// A plate after this many iterations.
fn swept<T: Scalar>(
    device: &Device,
    shape: Shape2,
    ends: Ends,
    initial: &[T],
    source: Option<&[T]>,
    iterations: usize,
) -> Result<Vec<T>, Error> {
    let field = |values: &[T]| Field2::from_vec(shape, values.to_vec());
    let heat = heat2d(shape, ends)?;
    let mut plate = heat.start(device, &field(initial)?)?;
    if let Some(source) = source {
        plate = plate.with_source(&field(source)?)?;
    }
    plate.iterate(iterations)?;
    Ok(plate.field()?.into_vec())
}

/// The plate of a f + b g, with the source of a s + b t, is that of f and s times a and
/// that of g and t times b.
fn adds_up<T: Scalar>(
    case: &Fields,
    (a, b): (i32, i32),
    sourced: bool,
    iterations: usize,
    device: &Device,
) -> Result<(), TestCaseError> {
    let [f, g, s, t] = [0, 1, 2, 3].map(|nth| case.get::<T>(nth));
    let [a, b] = [a, b].map(|factor| T::from(factor as f32));
    let combined =
        |f: &[T], g: &[T]| -> Vec<T> { f.iter().zip(g).map(|(&f, &g)| a * f + b * g).collect() };
    let swept = |f: &[T], s: &[T]| case.swept(device, f, Some(s).filter(|_| sourced), iterations);
    let together = swept(&combined(&f, &g), &combined(&s, &t))?;
    let apart = combined(&swept(&f, &s)?, &swept(&g, &t)?);
    for (index, (together, apart)) in together.iter().zip(&apart).enumerate() {
        prop_assert!(
            together == apart,
            "{}: {together}, {apart}",
            point(case.shape, index)
        );
    }
    Ok(())
}

/// What the unknowns gain in an iteration is what the source gives and what flows in from the
/// points that are kept: along each line between two neighbours the difference of their
/// temperatures, half of it along an end.
fn balances<T: Scalar>(
    case: &Fields,
    sourced: bool,
    iterations: usize,
    device: &Device,
) -> Result<(), TestCaseError> {
    let Shape2 { nx, ny } = case.shape;
    let source = Some(case.get::<T>(1)).filter(|_| sourced);
    let fixed = |index: usize| is_kept(case.shape, case.ends, index % nx, index / nx);
    let mut old = case.get::<T>(0);
    for iteration in 1..=iterations {
        let new = case.swept(device, &old, source.as_deref(), 1)?;
        let (mut gain, mut given) = (0.0, 0.0);
        let at = |index: usize| -> f64 { old[index].into() };
        let flow = |p: usize, q: usize, width: f64| match (fixed(p), fixed(q)) {
            (false, true) => width * (at(q) - at(p)),
            (true, false) => width * (at(p) - at(q)),
            // Heat that leaves one end enters at the other; or both are insulated.
            _ => 0.0,
        };
        for index in 0..nx * ny {
            let (i, j) = (index % nx, index / nx);
            if !fixed(index) {
                let share = half(i, nx) * half(j, ny);
                let new: f64 = new[index].into();
                gain += 4.0 * share * (new - at(index));
                let heat: f64 = source.as_ref().map_or(0.0, |it| it[index].into());
                given += share * heat;
            } else {
                prop_assert!(new[index] == old[index], "a point that is kept has changed");
            }
            if i + 1 < nx {
                given += flow(index, index + 1, half(j, ny));
            }
            if j + 1 < ny {
                given += flow(index, index + nx, half(i, nx));
            }
        }
        prop_assert!(
            gain == given,
            "iteration {iteration}: {gain}, but {given} was given"
        );
        old = new;
    }
    Ok(())
}

/// The plate with x and y exchanged, or seen in a mirror, has the same temperatures there:
/// to the last bit, for addition commutes.
fn looks_the_same<T: Scalar + Bits>(
    case: &Fields,
    sourced: bool,
    iterations: usize,
    device: &Device,
) -> Result<(), TestCaseError> {
    let Fields { shape, ends, .. } = *case;
    let [x, y] = ends;
    let Shape2 { nx, ny } = shape;
    let third = |nth| -> Vec<T> {
        let values = case.get::<T>(nth).into_iter();
        values.map(|it| it * T::from(1.0 / 3.0)).collect()
    };
    let (initial, source) = (third(0), Some(third(1)).filter(|_| sourced));
    let straight = case.swept(device, &initial, source.as_deref(), iterations)?;
    // Where a point of the other plate is in this one.
    type ViewIndex = fn(Shape2, usize, usize) -> usize;
    let views: [(Shape2, Ends, ViewIndex); 3] = [
        (Shape2::new(ny, nx), [y, x], |shape, i, j| i * shape.nx + j),
        (shape, [[x[1], x[0]], y], |shape, i, j| {
            j * shape.nx + (shape.nx - 1 - i)
        }),
        (shape, [x, [y[1], y[0]]], |shape, i, j| {
            (shape.ny - 1 - j) * shape.nx + i
        }),
    ];
    for (other, ends, place) in views {
        let seen = |values: &[T]| -> Vec<T> {
            (0..nx * ny)
                .map(|index| values[place(shape, index % other.nx, index / other.nx)])
                .collect()
        };
        let turned = source.as_deref().map(seen);
        let got = swept(
            device,
            other,
            ends,
            &seen(&initial),
            turned.as_deref(),
            iterations,
        )?;
        assert_same_bits(&got, &seen(&straight), |index| point(other, index));
    }
    Ok(())
}

/// No temperature leaves the range of the first ones without a source; and a plate that is
/// nowhere colder, with a source that is nowhere weaker, stays so. To the last bit, for
/// rounding never exchanges two numbers.
fn keeps_order<T: Scalar>(
    case: &Fields,
    iterations: usize,
    device: &Device,
) -> Result<(), TestCaseError> {
    let [f, g, s, t] = [0, 1, 2, 3].map(|nth| case.get::<T>(nth));
    let each = |f: &[T], g: &[T], larger: bool| -> Vec<T> {
        let pairs = f.iter().zip(g);
        pairs
            .map(|(&f, &g)| if (f < g) == larger { g } else { f })
            .collect()
    };
    // And where many neighbours are as warm as any point, or as cold.
    let one = vec![T::from(1.0); f.len()];
    let minus_one = vec![T::from(-1.0); f.len()];
    let clamped = each(&each(&f, &one, false), &minus_one, true);
    for initial in [&f, &clamped] {
        for value in case.swept(device, initial, None, iterations)? {
            let colder = initial.iter().any(|&it| it <= value);
            prop_assert!(colder && initial.iter().any(|&it| it >= value), "{value}");
        }
    }
    let cold = case.swept(
        device,
        &each(&f, &g, false),
        Some(&each(&s, &t, false)),
        iterations,
    )?;
    let warm = case.swept(
        device,
        &each(&f, &g, true),
        Some(&each(&s, &t, true)),
        iterations,
    )?;
    for (index, (cold, warm)) in cold.iter().zip(&warm).enumerate() {
        prop_assert!(
            cold <= warm,
            "{}: {cold} > {warm}",
            point(case.shape, index)
        );
    }
    Ok(())
}

/// A plate and iterations until it is steady, with possible faults.
#[derive(Debug, Clone)]
struct Attempt {
    shape: Shape2,
    ends: Ends,
    /// Whether the initial plate, and the source, have a row more.
    longer: [bool; 2],
    variant: Option<Variant>,
    /// The same everywhere, but in one point something else.
    source: Option<(i32, Option<(usize, f32)>)>,
    tolerance: f64,
    every: usize,
}

fn attempts() -> impl Strategy<Value = Attempt> {
    let none = select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
    let heat = prop_oneof![3 => Just(None), 1 => (0..9_usize, none).prop_map(Some)];
    (
        (3..9_usize, 3..9_usize),
        prop_oneof![3 => 0..16_u32, 1 => Just(15)],
        [rarely(8), rarely(8)],
        proptest::option::weighted(0.3, select(Variant::ALL.to_vec())),
        proptest::option::of((-3..4_i32, heat)),
        prop_oneof![2 => 0.0..1.0, 1 => awkward()],
        0..4_usize,
    )
        .prop_map(
            |((nx, ny), bits, longer, variant, source, tolerance, every)| Attempt {
                shape: Shape2::new(nx, ny),
                ends: ends(bits),
                longer,
                variant,
                source,
                tolerance,
                every,
            },
        )
}

/// Why a kernel cannot iterate on a plate with these boundaries on a device.
fn faults_of_kernel<T: Scalar>(variant: Variant, ends: Ends, device: &Device) -> Faults {
    let textbook = T::NAME == "f64" && Variant::TEXTBOOK.contains(&variant);
    let insulated = ends != DIRICHLET && !matches!(variant, Variant::March | Variant::Step);
    Faults::none()
        .and(
            textbook,
            "InvalidParameter",
            format!("the kernel is {variant} for f64"),
        )
        .and(
            insulated,
            "InvalidParameter",
            format!("the kernel is {variant}, but must be heat2d_march"),
        )
        .and(
            variant == Variant::Step,
            "InvalidParameter",
            format!("the kernel is {variant}, but must be a kernel of Jacobi iterations"),
        )
        .and(
            device.kind() == DeviceKind::Cpu,
            "NotLaunchable",
            format!("{variant}"),
        )
}

/// Starts, heats and iterates a plate with any faults.
fn is_judged_rightly<T: Scalar>(attempt: &Attempt, device: &Device) -> Result<(), TestCaseError> {
    let Attempt {
        shape,
        ends,
        longer,
        variant,
        source,
        every,
        ..
    } = *attempt;
    let shape_of = |longer: bool| Shape2::new(shape.nx, shape.ny + usize::from(longer));
    let heat = heat2d(shape, ends)?;

    let given = shape_of(longer[0]);
    let initial = Field2::filled(given, T::from(1.0))?;
    let faults = Faults::none().and(
        longer[0],
        "ShapeMismatch",
        format!("the initial plate has the shape {given}, but must have {shape}"),
    );
    let (faults, outcome) = match variant {
        None => (faults, heat.start(device, &initial)),
        Some(variant) => (
            faults.with(faults_of_kernel::<T>(variant, ends, device)),
            (heat.plan_with(device, variant)).and_then(|plan| plan.start(&initial)),
        ),
    };
    let Some(mut plate) = faults.judge(outcome)? else {
        return Ok(());
    };

    let mut heating = 0.0;
    if let Some((everywhere, other)) = source {
        let given = shape_of(longer[1]);
        let mut field = Field2::filled(given, T::from(everywhere as f32))?;
        let mut faults = Faults::none()
            .and(
                longer[1],
                "ShapeMismatch",
                format!("the source has the shape {given}, but must have {shape}"),
            )
            .and(
                variant.is_some_and(|variant| variant != Variant::March),
                "InvalidParameter",
                "but must be heat2d_march, because there is a source",
            );
        if let Some((index, value)) = other {
            field.as_mut_slice()[index] = T::from(value);
            let words = format!("the source of element {index} is {value}");
            faults = faults.and(true, "InvalidElement", words);
        }
        heating = f64::from(everywhere);
        let Some(heated) = faults.judge(plate.with_source(&field))? else {
            return Ok(());
        };
        plate = heated;
    }

    // Everything is at one temperature, and gets a quarter of the source in each iteration.
    let tolerance = nearest::<T>(attempt.tolerance);
    let as_f64: f64 = tolerance.into();
    let negative = as_f64 < 0.0 || as_f64.is_nan();
    let restless = ends == NEUMANN && heating.abs() / 4.0 > as_f64;
    let words = format!("the tolerance is {tolerance}, but must be at least");
    let faults = Faults::none()
        .and(negative || restless, "InvalidParameter", words)
        .and(
            every == 0,
            "InvalidParameter",
            "iterations between two checks is 0",
        );
    let outcome = faults.judge(plate.iterate_until(tolerance, every, 5))?;
    let iterations = outcome.map_or(0, |outcome| outcome.iterations);
    prop_assert_eq!(plate.iterations(), iterations);
    prop_assert!(iterations <= 5 && (iterations > 0) == faults.is_empty());
    Ok(())
}

/// The number of `T` that is nearest.
fn nearest<T: Scalar>(value: f64) -> T {
    // A `T` is made of an `f32`: in `f64` it is enough to try those.
    T::from(value as f32)
}

/// Iterates on buffers with possible faults: one element too long, or on another device.
fn are_judged_rightly<T: Scalar>(
    shape: Shape2,
    ends: Ends,
    longer: [bool; 3],
    away: [bool; 3],
    variant: Variant,
    device: &Device,
) -> Result<(), TestCaseError> {
    let heat = heat2d(shape, ends)?;
    let elsewhere = Device::emulator();
    let points = shape.nx * shape.ny;
    let lens = longer.map(|longer| points + usize::from(longer));
    let buffer = |nth: usize| {
        let device = if away[nth] { &elsewhere } else { device };
        device.alloc_filled(lens[nth], T::from(nth as f32))
    };
    let [mut old, mut new, source] = [buffer(0)?, buffer(1)?, buffer(2)?];

    let fault_of = |name: &str, nth: usize| {
        let words = format!(
            "heat2d: {name} has {} elements, but must have {points}",
            lens[nth]
        );
        Faults::none()
            .and(longer[nth], "LengthMismatch", words)
            .and(away[nth], "DeviceMismatch", format!("heat2d: {name} is on"))
    };
    let both = fault_of("old", 0).with(fault_of("new", 1));
    let kernel = faults_of_kernel::<T>(variant, ends, device);
    let plans = [
        (Faults::none(), heat.plan::<T>(device)),
        (kernel, heat.plan_with(device, variant)),
    ];
    let runs = both.is_empty() || fault_of("plate", 0).is_empty();
    for (faults, plan) in plans {
        let Some(mut plan) = faults.judge(plan)? else {
            continue;
        };
        both.judge(plan.iterate_into(&old, &mut new))?;
        fault_of("plate", 0).judge(plan.iterate(&mut old, 2))?;
    }
    if !runs {
        // Nothing has run.
        prop_assert!(old.to_vec()?.iter().all(|&it| it == T::from(0.0)));
        prop_assert!(new.to_vec()?.iter().all(|&it| it == T::from(1.0)));
    }
    let plan = heat.plan::<T>(device)?.with_source(source);
    if let Some(mut plan) = fault_of("source", 2).judge(plan)? {
        both.judge(plan.iterate_into(&old, &mut new))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(property::cases(96))]

    #[test]
    fn plates_add_up(
        case in fields(whole(), 4),
        factors in (-2..=2_i32, -2..=2_i32),
        sourced in any::<bool>(),
        iterations in 1..8_usize,
        device in device(),
    ) {
        adds_up::<f32>(&case, factors, sourced, iterations, &device)?;
        adds_up::<f64>(&case, factors, sourced, iterations, &device)?;
    }

    #[test]
    fn heat_is_neither_made_nor_lost(
        case in fields(whole(), 2),
        sourced in any::<bool>(),
        iterations in 1..5_usize,
        device in device(),
    ) {
        balances::<f32>(&case, sourced, iterations, &device)?;
        balances::<f64>(&case, sourced, iterations, &device)?;
    }

    #[test]
    fn plates_look_the_same_turned_and_in_a_mirror(
        case in fields(any_size(), 2),
        sourced in any::<bool>(),
        iterations in 1..5_usize,
        device in device(),
    ) {
        looks_the_same::<f32>(&case, sourced, iterations, &device)?;
        looks_the_same::<f64>(&case, sourced, iterations, &device)?;
    }

    #[test]
    fn temperatures_keep_their_range_and_order(
        case in fields(any_size(), 4),
        iterations in 1..8_usize,
        device in device(),
    ) {
        keeps_order::<f32>(&case, iterations, &device)?;
        keeps_order::<f64>(&case, iterations, &device)?;
    }

}

proptest! {
    #![proptest_config(property::cases(256))]

    #[test]
    fn buffers_of_plates_get_the_error_they_deserve(
        (nx, ny, bits) in (3..9_usize, 3..9_usize, 0..16_u32),
        longer in [rarely(4), rarely(4), rarely(4)],
        away in [rarely(4), rarely(4), rarely(4)],
        variant in select(Variant::ALL.to_vec()),
        device in device(),
    ) {
        let shape = Shape2::new(nx, ny);
        are_judged_rightly::<f32>(shape, ends(bits), longer, away, variant, &device)?;
        are_judged_rightly::<f64>(shape, ends(bits), longer, away, variant, &device)?;
    }

    #[test]
    fn plates_get_the_error_they_deserve(attempt in attempts(), device in device()) {
        is_judged_rightly::<f32>(&attempt, &device)?;
        is_judged_rightly::<f64>(&attempt, &device)?;
    }

    /// Costs are computed for plates far larger than any memory, too.
    #[test]
    fn shapes_of_plates_get_the_error_they_deserve(
        (nx, ny) in prop_oneof![
            3 => (extent(0..9), extent(0..9)),
            // The largest there are.
            1 => (0x7fff_fff0..0x8000_0000_usize, 0x7fff_fff0..0x8000_0000_usize),
        ],
        bits in 0..16_u32,
    ) {
        let faults = [("nx", nx), ("ny", ny)].into_iter().fold(Faults::none(), |faults, (name, n)| {
            let words = format!("heat2d: {name} is {n}, but ");
            faults
                .and(n < 3, "InvalidSize", words.clone() + "must be at least 3")
                .and(n > 0x7fff_ffff, "IndexOverflow", words + "at most 2147483647")
        });
        let shape = Shape2::new(nx, ny);
        let Some(heat) = faults.judge(Heat2d::dirichlet(shape))? else {
            return Ok(());
        };
        let grid = heat.grid().with_ends(Axis::X, ends(bits)[0])?.with_ends(Axis::Y, ends(bits)[1])?;
        let heat = heat2d(shape, ends(bits))?;
        prop_assert_eq!(heat, Heat2d::new(&grid)?);
        prop_assert_eq!(heat, heat2d(Shape2::new(5, 4), NEUMANN)?.with_grid(&grid)?);
        let kept = |bits: u32| 2 - bits.count_ones() as usize;
        let unknowns = (nx - kept(bits & 0b1010)) as u128 * (ny - kept(bits & 0b0101)) as u128;
        let points = nx as u128 * ny as u128;
        let counted = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        prop_assert_eq!(heat.unknowns(), counted(unknowns));
        let cost = |size: u128| Cost {
            bytes: counted(size * (points + unknowns)),
            flops: counted(4 * unknowns),
        };
        prop_assert_eq!(heat.cost::<f32>(), cost(4));
        prop_assert_eq!(heat.cost::<f64>(), cost(8));
    }

    /// The problems are of any shape, also such as has no unknown.
    #[test]
    fn problems_are_of_any_shape(
        (nx, ny) in (0..9_usize, 0..9_usize),
        (other, iterations) in (0..9_usize, 0..4_usize),
        device in device(),
    ) {
        let shape = Shape2::new(nx, ny);
        let initial = problem::hot_left_wall::<f64>(shape)?;
        for steady in [problem::steady_state(shape)?, problem::continuous_steady_state(shape)?] {
            prop_assert_eq!(steady.shape(), shape);
            prop_assert!(steady.as_slice().iter().all(|value| (0.0..=1.0).contains(value)));
            for j in 0..ny {
                prop_assert!(nx == 0 || steady[(0, j)] == initial[(0, j)]);
            }
        }
        let asked = Shape2::new(other.max(3), ny.max(3));
        let words = format!("the initial plate has the shape {shape}, but must have {asked}");
        let faults = Faults::none().and(asked != shape, "ShapeMismatch", words);
        let heat = Heat2d::dirichlet(asked)?;
        let mut result = Field2::filled(shape, 7.0)?;
        let into = heat.iterate_of_into(&device, &initial, iterations, &mut result);
        let written = faults.judge(into)?.is_some();
        let swept = faults.judge(heat.iterate_of(&device, &initial, iterations))?;
        match &swept {
            Some(plate) => prop_assert!(written && *plate == result),
            None => prop_assert!(result.as_slice().iter().all(|value| *value == 7.0)),
        }
        if let Some(plate) = swept {
            prop_assert!(plate.as_slice().iter().all(|value| (0.0..=1.0).contains(value)));
        }
    }

    #[test]
    fn problems_larger_than_memory_are_errors(
        (nx, ny) in (extent(1..3), extent(1..3))
            .prop_filter("memory", |&(nx, ny)| nx as u128 * ny as u128 > 1 << 60),
    ) {
        let shape = Shape2::new(nx, ny);
        for refused in [
            problem::hot_left_wall::<f64>(shape),
            problem::steady_state(shape),
            problem::continuous_steady_state(shape),
        ] {
            let error = refused.unwrap_err();
            let right = matches!(error, Error::IndexOverflow { .. } | Error::HostOutOfMemory { .. });
            prop_assert!(right, "{error:?}");
        }
    }
}
