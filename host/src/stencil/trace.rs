//! Finds what an update reads and computes by running it once on values that count.
#![forbid(unsafe_code)]

use super::number::{MAX_INPUTS, OPERATION};
use crate::Error;
use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real, Value, may_be_over_past};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A read that the update does not declare: the field and the offset.
type Undeclared = (usize, [isize; 3]);

/// The counts.
#[derive(Default)]
struct Counts {
    flops: Cell<u64>,
    undeclared: Cell<Option<Undeclared>>,
}

/// A value that only counts its operations.
struct Traced<'c, T> {
    counts: &'c Counts,
    number: PhantomData<T>,
}

impl<T> Clone for Traced<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Traced<'_, T> {}

impl<T> Traced<'_, T> {
    fn after(self, flops: u64) -> Self {
        self.counts.flops.update(|so_far| so_far + flops);
        self
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident;)+) => {$(
        impl<T> $trait for Traced<'_, T> {
            type Output = Self;

            fn $method(self, _: Self) -> Self {
                self.after(1)
            }
        }

        impl<T: Real> $trait<T> for Traced<'_, T> {
            type Output = Self;

            fn $method(self, _: T) -> Self {
                self.after(1)
            }
        }
    )+};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<T> Neg for Traced<'_, T> {
    type Output = Self;

    fn neg(self) -> Self {
        self
    }
}

impl<T: Real> Value<T> for Traced<'_, T> {
    fn fused(self, _: Self, _: Self) -> Self {
        self.after(2)
    }

    fn root(self) -> Self {
        self.after(1)
    }

    fn smaller(self, _: Self) -> Self {
        self.after(1)
    }

    fn larger(self, _: Self) -> Self {
        self.after(1)
    }
}

/// A point whose neighbours are such values.
struct Tracing<'c, U, const INPUTS: usize, const OUTPUTS: usize> {
    counts: &'c Counts,
    update: PhantomData<U>,
}

impl<'c, T, U, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for Tracing<'c, U, INPUTS, OUTPUTS>
where
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = Traced<'c, T>;

    const REACH: &'static [Reach] = &U::REACH;

    fn value(&self, field: usize, offset: [isize; 3]) -> Traced<'c, T> {
        let declared = U::REACH.get(field);
        if declared.is_none_or(|reach| !reach.contains(offset)) {
            self.counts.undeclared.set(Some((field, offset)));
        }
        self.splat(T::ZERO)
    }

    fn splat(&self, _: T) -> Traced<'c, T> {
        Traced {
            counts: self.counts,
            number: PhantomData,
        }
    }
}

/// The number of floating-point operations of an update; a fused multiply-add counts as two.
///
/// # Errors
///
/// [`Error::InvalidParameter`] for a read that the update does not declare, and for an update with
/// an impossible number of fields or axes.
pub(super) fn flops<T, U, const INPUTS: usize, const OUTPUTS: usize>(
    update: &U,
) -> Result<u64, Error>
where
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    let invalid = |parameter, given: String, required: String| {
        Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given,
            required,
        })
    };
    let states = OUTPUTS * (1 + U::PAST);
    if OUTPUTS == 0 || INPUTS < states || INPUTS > MAX_INPUTS {
        return invalid(
            "the number of inputs",
            INPUTS.to_string(),
            format!(
                "at least {states}, the outputs' present and past, and at most {}; and there \
                 must be an output",
                MAX_INPUTS
            ),
        );
    }
    if let Some(reach) = U::REACH.iter().find(|reach| !reach.is_possible()) {
        return invalid(
            "a field's reach",
            format!("{reach:?}"),
            format!(
                "at most {} along the axes, and {} off them",
                halo_stencil::MAX_RADIUS,
                halo_stencil::MAX_BOX
            ),
        );
    }
    if !may_be_over_past::<T, U, INPUTS, OUTPUTS>() {
        return invalid(
            "an update that is OVER_PAST",
            format!("PAST = {} and REACH = {:?}", U::PAST, U::REACH),
            "one with PAST = 1 that reads the past fields at the point itself alone".to_owned(),
        );
    }
    let counts = Counts::default();
    let _ = update.update(&Tracing::<U, INPUTS, OUTPUTS> {
        counts: &counts,
        update: PhantomData,
    });
    match counts.undeclared.get() {
        Some((field, offset)) => invalid(
            "a read of the update",
            format!("of field {field} at the offset {offset:?}"),
            "one that its REACH declares".to_owned(),
        ),
        None => Ok(counts.flops.get()),
    }
}
