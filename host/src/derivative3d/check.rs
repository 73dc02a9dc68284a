//! Checks the fields of a launch of derivative kernels.

use super::operator::Operator;
use crate::axis::Axis;
use crate::grid::Boundary;
use crate::{Buffer, Device, Element, Error, Shape3, View, ViewMut};
use gpu_kernels::derivative3d::RADIUS;
use gpu_kernels::derivative3d::general::TABLE_LEN;
use gpu_kernels::registry::Problem;
use std::ops::Range;

/// The family's name in errors.
pub(super) const OPERATION: &str = "derivative3d";

/// The name of the input field in errors.
pub(super) const READ: &str = "derivative3d: f";
pub(super) const WRITTEN: &str = "derivative3d: df";

/// The tables of weights for one order of derivative, along x, y and z.
pub(super) type Tables<T> = [[T; TABLE_LEN]; 3];

/// The stencils of one order of derivative, as arguments of kernels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stencils<'a, T> {
    pub shape: Shape3,
    /// The planes to compute: the first and the one after the last.
    pub planes: [usize; 2],
    pub radius: u32,
    /// The boundaries of the axes.
    pub boundaries: [Boundary; 3],
    /// The same as a number for kernels; x is the lowest byte.
    pub rules: u32,
    pub tables: &'a Tables<T>,
}

impl<T: Copy> Stencils<'_, T> {
    /// The problem in terms of the kernel table.
    pub(super) const fn problem(&self) -> Problem {
        let Shape3 { nx, ny, nz } = self.shape;
        Problem::volume(nx, ny, nz).with_stencil(self.radius, self.rules)
    }

    /// The problem with only the planes to compute.
    pub(super) const fn problem_of_planes(&self) -> Problem {
        let (Shape3 { nx, ny, .. }, [begin, end]) = (self.shape, self.planes);
        Problem::volume(nx, ny, end - begin).with_stencil(self.radius, self.rules)
    }

    /// The elements of a field in the planes to compute.
    pub(super) const fn elements(&self) -> Range<usize> {
        let (Shape3 { nx, ny, .. }, [begin, end]) = (self.shape, self.planes);
        begin * ny * nx..end * ny * nx
    }

    /// The planes to compute, in the kernels' type; they fit, because the extents do.
    pub(super) const fn planes(&self) -> [u32; 2] {
        let [begin, end] = self.planes;
        [begin as u32, end as u32]
    }

    /// The extents in the kernels' type; they fit, because the geometry has checked them.
    pub(super) const fn extents(&self) -> [u32; 3] {
        let Shape3 { nx, ny, nz } = self.shape;
        [nx as u32, ny as u32, nz as u32]
    }

    /// The weights of 8th order inside the axis, the nearest neighbour first.
    pub(super) fn weights(&self, axis: Axis) -> [T; RADIUS] {
        std::array::from_fn(|m| self.tables[axis.index()][m])
    }

    /// The boundary rule of an axis.
    pub(super) const fn rule(&self, axis: Axis) -> u32 {
        self.rules >> (8 * axis.index()) & 0xff
    }

    /// The number of points of the period that are stored twice.
    pub(super) const fn overlap(&self, axis: Axis) -> u32 {
        self.boundaries[axis.index()].overlap() as u32
    }
}

/// Fields that fit a plan: its shape, its device, and the number of fields of the operator. A
/// kernel of the plan may be launched on them. Only the check can make this type.
#[derive(Debug)]
pub struct Checked<'a, 'w, T: Element> {
    stencils: Stencils<'a, T>,
    operator: Operator,
    inputs: &'a [&'a Buffer<T>],
    outputs: &'a mut [&'w mut Buffer<T>],
}

/// The fields and the stencils of a derivative along one axis. The fields fit, as in [`Checked`].
#[derive(Debug)]
pub(super) struct Along<'a, T: Element> {
    pub device: Device,
    pub stencils: Stencils<'a, T>,
    pub operator: Operator,
    pub f: View<'a, T>,
    pub df: ViewMut<'a, T>,
}

impl<'a, 'w, T: Element> Checked<'a, 'w, T> {
    /// `stencils` must have the operator's order, and their axes must be long enough for it.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`], [`Error::LengthMismatch`] or [`Error::DeviceMismatch`] for buffers
    /// that do not fit.
    pub(super) fn new(
        device: &Device,
        stencils: Stencils<'a, T>,
        operator: Operator,
        inputs: &'a [&'a Buffer<T>],
        outputs: &'a mut [&'w mut Buffer<T>],
    ) -> Result<Self, Error> {
        let read = inputs.iter().map(|buffer| (READ, *buffer));
        let written = outputs.iter().map(|buffer| (WRITTEN, &**buffer));
        for (what, buffer) in read.chain(written) {
            buffer.require_shape(what, stencils.shape)?;
            device.require(what, buffer)?;
        }
        if (inputs.len(), outputs.len()) != operator.fields() {
            unreachable!("as many fields as the operator has");
        }
        Ok(Self {
            stencils,
            operator,
            inputs,
            outputs,
        })
    }

    /// The operator.
    pub(super) const fn operator(&self) -> Operator {
        self.operator
    }

    /// The stencils.
    pub(super) const fn stencils(&self) -> Stencils<'a, T> {
        self.stencils
    }

    /// The fields of a derivative along `axis`, with its stencils. The neighbours along x and y are
    /// in the same plane, so for these axes the fields are cut down to the planes to compute.
    pub(super) fn into_fields_along(self, axis: Axis) -> Result<Along<'a, T>, Error> {
        let (mut stencils, operator) = (self.stencils, self.operator);
        let ([f], [df]) = self.into_fields() else {
            unreachable!("as many fields as the operator has");
        };
        let device = f.device().clone();
        let mut elements = 0..f.len();
        if axis != Axis::Z {
            elements = stencils.elements();
            let [begin, end] = stencils.planes;
            stencils.shape.nz = end - begin;
            stencils.planes = [0, end - begin];
        }
        Ok(Along {
            device,
            stencils,
            operator,
            f: f.view(elements.clone())?,
            df: df.view_mut(elements)?,
        })
    }

    /// The input and the output fields.
    pub(super) fn into_fields(self) -> (&'a [&'a Buffer<T>], &'a mut [&'w mut Buffer<T>]) {
        (self.inputs, self.outputs)
    }
}
