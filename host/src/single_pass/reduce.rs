//! A reduction with its buffers, and the check that they fit.

use super::cpu::Port;
use super::kinds::{Extremum, Moment, Operation};
use crate::argument::Argument;
use crate::error::require_finite;
use crate::{Buffer, Device, Element, Error};
use bytemuck::Zeroable;

/// A reduction: its inputs, and the buffer for the result.
#[derive(Debug)]
pub enum Reduce<'a, T: Element + Port> {
    /// The elements themselves.
    Elements {
        operation: Operation,
        values: &'a Buffer<T>,
        result: &'a mut Buffer<T>,
    },
    /// The elements times a power of two, or the squares of these products.
    Moment {
        moment: Moment,
        scale: f64,
        values: &'a Buffer<T>,
        result: &'a mut Buffer<f64>,
    },
    /// The products of the elements of two arrays.
    Dot {
        x: &'a Buffer<T>,
        y: &'a Buffer<T>,
        result: &'a mut Buffer<T::Product>,
    },
    /// The index of an extreme element.
    ArgExtremum {
        extremum: Extremum,
        values: &'a Buffer<T>,
        result: &'a mut Buffer<u64>,
    },
}

/// A reduction whose buffers fit: they are on one device, the input is not empty, two inputs have
/// the same length, and the result has one element. Only the check can make this type.
#[derive(Debug)]
pub struct Checked<'a, T: Element + Port>(Reduce<'a, T>);

impl<'a, T: Element + Port> Reduce<'a, T> {
    /// The name in errors.
    const fn name(&self) -> &'static str {
        match self {
            Self::Elements { operation, .. } => operation.full_name(),
            Self::Moment { moment, .. } => moment.full_name(),
            Self::Dot { .. } => "reduction: dot",
            Self::ArgExtremum { extremum, .. } => extremum.full_name(),
        }
    }

    /// The input, or the first of two.
    pub(super) const fn values(&self) -> &'a Buffer<T> {
        match self {
            Self::Elements { values, .. }
            | Self::Moment { values, .. }
            | Self::Dot { x: values, .. }
            | Self::ArgExtremum { values, .. } => values,
        }
    }

    /// Bytes of a value during the reduction; argmin and argmax have an element and its index.
    pub(super) const fn combined_bytes(&self) -> usize {
        match self {
            Self::Elements { .. } => size_of::<T>(),
            Self::Moment { .. } => size_of::<f64>(),
            Self::Dot { .. } => size_of::<T::Product>(),
            Self::ArgExtremum { .. } => size_of::<T>() + size_of::<u64>(),
        }
    }

    /// Checks that everything is on this device and fits. If the input is empty and the result is
    /// 0, it writes that and returns `None`.
    pub(super) fn check(self, device: &Device) -> Result<Option<Checked<'a, T>>, Error> {
        let operation = self.name();
        device.require("reduction: values", self.values())?;
        match &self {
            Self::Elements { result, .. } => one_element(device, operation, result)?,
            Self::Moment { scale, result, .. } => {
                one_element(device, operation, result)?;
                require_finite(operation, "the scale", *scale)?;
            }
            Self::Dot { x, y, result } => {
                device.require("reduction: values", *y)?;
                one_element(device, operation, result)?;
                if y.len() != x.len() {
                    return Err(Error::LengthMismatch {
                        argument: Argument::new(operation, "y"),
                        required: x.len(),
                        given: y.len(),
                    });
                }
            }
            Self::ArgExtremum { result, .. } => one_element(device, operation, result)?,
        }
        if !self.values().is_empty() {
            return Ok(Some(Checked(self)));
        }
        match self {
            Self::Elements {
                operation: Operation::Sum,
                result,
                ..
            } => result.fill(T::zeroed())?,
            Self::Dot { result, .. } => result.fill(T::Product::zeroed())?,
            Self::Elements { .. } | Self::Moment { .. } | Self::ArgExtremum { .. } => {
                return Err(Error::EmptyInput { operation });
            }
        }
        Ok(None)
    }
}

/// Checks that the result is on this device and has one element.
fn one_element<R: Element>(
    device: &Device,
    operation: &'static str,
    result: &Buffer<R>,
) -> Result<(), Error> {
    device.require("reduction: result", result)?;
    if result.len() == 1 {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        argument: Argument::new(operation, "result"),
        required: 1,
        given: result.len(),
    })
}

impl<'a, T: Element + Port> Checked<'a, T> {
    /// The checked reduction.
    pub(super) fn into_inner(self) -> Reduce<'a, T> {
        self.0
    }

    /// Reduces with the port if the buffers are in host memory; otherwise returns itself.
    pub(super) fn on_host(mut self) -> Option<Self> {
        self.by_port().is_none().then_some(self)
    }

    /// Returns `None` if the buffers are on a device.
    fn by_port(&mut self) -> Option<()> {
        match &mut self.0 {
            Reduce::Elements {
                operation,
                values,
                result,
            } => {
                let total = T::reduce(*operation, values.as_host_slice()?);
                result.as_host_mut_slice()?[0] = total;
            }
            Reduce::Moment {
                moment,
                scale,
                values,
                result,
            } => {
                let total = T::moment(*moment, *scale, values.as_host_slice()?);
                result.as_host_mut_slice()?[0] = total;
            }
            Reduce::Dot { x, y, result } => {
                let total = T::dot(x.as_host_slice()?, y.as_host_slice()?);
                result.as_host_mut_slice()?[0] = total;
            }
            Reduce::ArgExtremum {
                extremum,
                values,
                result,
            } => {
                // An extreme element is one of the elements, so its index exists.
                let place = T::position(*extremum, values.as_host_slice()?).unwrap_or(0);
                result.as_host_mut_slice()?[0] = place as u64;
            }
        }
        Some(())
    }
}
