//! Derivatives of fields that several ranks share.

use crate::{Ahead, Communicator, Decomposition, Error, Ghosted};
use halo_gpu::derivative3d::{self, FiniteDifferences3d};
use halo_gpu::{Axis, Boundary, Buffer, DeviceKind, Grid3, Scalar, Shape3};

/// The operation in errors.
const OPERATION: &str = "derivatives over ranks";

/// [`FiniteDifferences3d`] on fields that several ranks share: [`halo_gpu::derivative3d::Plan`]
/// over several devices, with the bits of one.
///
/// Each call updates the ghost points of the fields that it reads. If only z is cut, a rank
/// computes the planes that need no ghost points during the messages: by default on a GPU and in
/// the emulator, and on a CPU if the ranks are on several machines ([`Communicator::with_rims`]).
/// A rank computes its own planes only: along z the ghost points of results keep their values,
/// along x and y their values are unspecified.
///
/// ```
/// use halo_distributed::{Decomposition, Error, Ghosted, derivative3d};
/// use halo_gpu::derivative3d::FiniteDifferences3d;
/// use halo_gpu::{Device, Field3, Grid3, Shape3};
///
/// # fn main() -> Result<(), Error> {
/// let grid = Grid3::new(Shape3::new(8, 9, 20), [0.1; 3])?;
/// let differences = FiniteDifferences3d::<f64>::new(&grid)?;
/// let wave = Field3::from_fn(grid.shape(), |i, j, k| ((i + 2 * j + 3 * k) as f64).sin())?;
/// let one = differences.laplacian_of(&Device::cpu(), &wave)?;
///
/// let several = halo_distributed::run(2, |communicator| {
///     let cut = Decomposition::slabs([8, 9, 20], 2)?;
///     let cut = cut.periodic(0)?.periodic(1)?.periodic(2)?;
///     let value = |[i, j, k]: [usize; 3]| wave[(i, j, k)];
///     let width = differences.radius();
///     let mut f = Ghosted::new(&communicator, &Device::cpu(), cut, width, value)?;
///     let mut laplacian = f.zeros_like()?;
///     let plan = derivative3d::Plan::new(&communicator, &differences, &f)?;
///     plan.laplacian(&mut f, &mut laplacian)?;
///     laplacian.gather(&communicator)
/// })?;
/// assert!(several.iter().all(|laplacian| laplacian == one.as_slice()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Plan<'a, T: Scalar> {
    communicator: &'a Communicator,
    /// The layout that all fields have.
    layout: Layout,
    /// Computes all planes of the rank's own points.
    own: derivative3d::Plan<T>,
    /// Computes the same planes in parts, some of them during the messages. Only if z alone is cut.
    apart: Option<Apart<T>>,
    /// Whether messages overlap with derivatives along axes that are not cut.
    ahead: bool,
}

/// The decomposition of a field, and the width of its ghosts.
type Layout = (Decomposition<3>, usize);

/// Plans of parts of the rank's own planes.
#[derive(Debug)]
struct Apart<T: Scalar> {
    /// Of the planes that need no ghost points.
    inner: derivative3d::Plan<T>,
    /// Of the planes next to ghost points.
    outer: Vec<derivative3d::Plan<T>>,
}

impl<'a, T: Scalar> Plan<'a, T> {
    /// A plan of `differences` for fields like `part`, which has at least
    /// [`radius`](FiniteDifferences3d::radius) planes of ghost points. Its decomposition is
    /// periodic along the same axes as the grid.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same grid and order of accuracy;
    /// [`Error::InvalidParameter`] for a field of another shape, too few ghost points, a grid and a
    /// decomposition that are not periodic along the same axes, and a cut along an axis that is
    /// [periodic with its end point](Boundary::PeriodicWithEndpoint), because no plane may be
    /// stored twice; [`Error::Device`] if a part is too thin for one-sided stencils.
    pub fn new(
        communicator: &'a Communicator,
        differences: &FiniteDifferences3d<T>,
        part: &Ghosted<T, 3>,
    ) -> Result<Self, Error> {
        let grid = (differences.grid(), differences.accuracy());
        communicator.agree("the grid", &grid)?;
        let kind = part.buffer().device().kind();
        let ahead = match communicator.rims() {
            Ahead::Never => false,
            Ahead::Always => true,
            Ahead::Auto => kind != DeviceKind::Cpu || communicator.is_across_machines(),
        };
        communicator.agree("whether inner points are computed ahead", &ahead)?;
        let (own, apart) = communicator.together(plans(differences, part, ahead))?;
        Ok(Self {
            communicator,
            layout: (*part.decomposition(), part.width()),
            own,
            apart,
            ahead,
        })
    }

    /// The plan of this rank's own planes, without the ghost planes along z. It exchanges nothing:
    /// the ghost points of the buffers that it reads must be up to date.
    #[must_use]
    pub const fn of_part(&self) -> &derivative3d::Plan<T> {
        &self.own
    }

    /// As [`halo_gpu::derivative3d::Plan::derivative`]. The call updates the ghost points of `f`
    /// even if the axis is not cut, and the derivative needs none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a field with another decomposition or width of ghosts than
    /// the plan's; [`Error::Device`]; as [`Transport::exchange`](crate::Transport::exchange).
    pub fn derivative(
        &self,
        axis: Axis,
        f: &mut Ghosted<T, 3>,
        df: &mut Ghosted<T, 3>,
    ) -> Result<(), Error> {
        self.require([&*f, df])?;
        self.each([f], |plan, [f]| plan.derivative(axis, f, df.buffer_mut()))
    }

    /// As [`halo_gpu::derivative3d::Plan::second_derivative`].
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative).
    pub fn second_derivative(
        &self,
        axis: Axis,
        f: &mut Ghosted<T, 3>,
        df: &mut Ghosted<T, 3>,
    ) -> Result<(), Error> {
        self.require([&*f, df])?;
        self.each([f], |plan, [f]| {
            plan.second_derivative(axis, f, df.buffer_mut())
        })
    }

    /// As [`halo_gpu::derivative3d::Plan::gradient`]. Where x or y is cut, the derivatives along
    /// the other axes are computed during the messages.
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative).
    pub fn gradient(
        &self,
        f: &mut Ghosted<T, 3>,
        gradient: [&mut Ghosted<T, 3>; 3],
    ) -> Result<(), Error> {
        let [x, y, z] = gradient;
        self.require([&*f, x, y, z])?;
        let mut gradient = [x, y, z].map(Ghosted::buffer_mut);
        let is_cut = |axis: Axis| f.ghosts()[axis.index()] != [0; 2];
        let (cut, others): (Vec<_>, Vec<_>) = Axis::ALL.into_iter().partition(|axis| is_cut(*axis));
        if !self.ahead || self.apart.is_some() || others.is_empty() || cut.is_empty() {
            return self.each([f], |plan, [f]| {
                plan.gradient(f, gradient.each_mut().map(|it| &mut **it))
            });
        }
        let mut along = |axes: &[Axis], f: &Buffer<T>| {
            let mut axes = axes.iter();
            axes.try_for_each(|axis| self.own.derivative(*axis, f, gradient[axis.index()]))
        };
        f.exchange_beside(self.communicator, |f| Ok(along(&others, f)?))?;
        Ok(along(&cut, f.buffer())?)
    }

    /// As [`halo_gpu::derivative3d::Plan::divergence`].
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative).
    pub fn divergence(
        &self,
        components: [&mut Ghosted<T, 3>; 3],
        divergence: &mut Ghosted<T, 3>,
    ) -> Result<(), Error> {
        let [u, v, w] = components;
        self.require([&*u, v, w, divergence])?;
        self.each([u, v, w], |plan, components| {
            plan.divergence(components, divergence.buffer_mut())
        })
    }

    /// As [`halo_gpu::derivative3d::Plan::curl`].
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative).
    pub fn curl(
        &self,
        components: [&mut Ghosted<T, 3>; 3],
        curl: [&mut Ghosted<T, 3>; 3],
    ) -> Result<(), Error> {
        let ([u, v, w], [x, y, z]) = (components, curl);
        self.require([&*u, v, w, x, y, z])?;
        self.each([u, v, w], |plan, components| {
            plan.curl(components, [x.buffer_mut(), y.buffer_mut(), z.buffer_mut()])
        })
    }

    /// As [`halo_gpu::derivative3d::Plan::laplacian`].
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative).
    pub fn laplacian(
        &self,
        f: &mut Ghosted<T, 3>,
        laplacian: &mut Ghosted<T, 3>,
    ) -> Result<(), Error> {
        self.require([&*f, laplacian])?;
        self.each([f], |plan, [f]| plan.laplacian(f, laplacian.buffer_mut()))
    }

    /// Updates the ghost points of the fields, and computes: all planes after the messages, or the
    /// inner planes during the messages of the last field and the outer planes after them.
    fn each<const N: usize>(
        &self,
        mut fields: [&mut Ghosted<T, 3>; N],
        mut compute: impl FnMut(&derivative3d::Plan<T>, [&Buffer<T>; N]) -> Result<(), halo_gpu::Error>,
    ) -> Result<(), Error> {
        let Some((last, others)) = fields.split_last_mut() else {
            return Ok(());
        };
        for field in &mut *others {
            field.exchange(self.communicator)?;
        }
        let Some(Apart { inner, outer }) = &self.apart else {
            last.exchange(self.communicator)?;
            return Ok(compute(&self.own, with(others, last.buffer()))?);
        };
        last.exchange_beside(self.communicator, |last| {
            Ok(compute(inner, with(others, last))?)
        })?;
        for plan in outer {
            compute(plan, with(others, last.buffer()))?;
        }
        Ok(())
    }

    /// Returns an error for a field with another layout or another device than the plan's, before
    /// messages are sent.
    fn require<const N: usize>(&self, fields: [&Ghosted<T, 3>; N]) -> Result<(), Error> {
        for field in fields {
            let given = (*field.decomposition(), field.width());
            if given != self.layout {
                return Err(Error::InvalidParameter {
                    operation: OPERATION,
                    parameter: "the decomposition and the width of the ghosts of a field",
                    given: format!("{given:?}"),
                    required: format!("{:?}, those of the plan", self.layout),
                });
            }
            field.require_points()?;
            self.own.device().require(OPERATION, field.buffer())?;
        }
        Ok(())
    }
}

/// The buffers of the fields, then the last one.
fn with<'f, T: Scalar, const N: usize>(
    fields: &'f [&mut Ghosted<T, 3>],
    last: &'f Buffer<T>,
) -> [&'f Buffer<T>; N] {
    std::array::from_fn(|n| fields.get(n).map_or(last, |field| field.buffer()))
}

/// The plan of a rank's own planes, and, if only z is cut and inner points are computed `ahead`, the
/// plans of their parts.
fn plans<T: Scalar>(
    differences: &FiniteDifferences3d<T>,
    part: &Ghosted<T, 3>,
    ahead: bool,
) -> Result<(derivative3d::Plan<T>, Option<Apart<T>>), Error> {
    let of_part = of_part(differences, part)?;
    let plan = |planes| of_part.plan_of_planes(part.buffer().device(), planes);
    let ([x, y, [below, above]], nz) = (part.ghosts(), of_part.shape().nz);
    let own = below..nz - above;
    // The first plane that needs no ghost points, and the one after the last.
    let radius = differences.radius();
    let low = own.start + if below > 0 { radius } else { 0 };
    let high = own.end - if above > 0 { radius } else { 0 };
    let only_z = [x, y] == [[0; 2]; 2] && [below, above] != [0; 2];
    // The one-sided stencil of a second derivative, which has the most points, must be within the
    // rank's own planes too.
    let [boundary, _] = differences.grid().ends(Axis::Z);
    let is_thin = boundary == Boundary::OneSided && own.len() < 2 * radius + 2;
    let apart = if ahead && only_z && low < high && !is_thin {
        let outer = [own.start..low, high..own.end].into_iter();
        let outer = outer.filter(|planes| !planes.is_empty()).map(plan);
        Some(Apart {
            inner: plan(low..high)?,
            outer: outer.collect::<Result<_, _>>()?,
        })
    } else {
        None
    };
    Ok((plan(own)?, apart))
}

/// The derivatives on the grid that a part forms, ghost points included.
fn of_part<T: Scalar>(
    differences: &FiniteDifferences3d<T>,
    part: &Ghosted<T, 3>,
) -> Result<FiniteDifferences3d<T>, Error> {
    let grid = differences.grid();
    let invalid = |parameter, given: String, required| {
        Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given,
            required,
        })
    };
    let (cut, Shape3 { nx, ny, nz }) = (part.decomposition(), grid.shape());
    if cut.points() != [nx, ny, nz] {
        let given = format!("of {:?} points", cut.points());
        return invalid("the field", given, format!("of {nx} × {ny} × {nz} points"));
    }
    if !part.is_whole() && part.width() < differences.radius() {
        let required = format!(
            "at least {}, as far as stencils reach",
            differences.radius()
        );
        return invalid(
            "the width of the ghosts",
            part.width().to_string(),
            required,
        );
    }
    let [nx, ny, nz] = part.extents();
    let spacing = Axis::ALL.map(|axis| grid.spacing(axis));
    let mut of_part = Grid3::new(Shape3::new(nx, ny, nz), spacing)?;
    for axis in Axis::ALL {
        // Both ends have the same boundary: `FiniteDifferences3d::new` requires it.
        let [boundary, _] = grid.ends(axis);
        let is_cut = cut.parts()[axis.index()] > 1;
        if is_cut && boundary == Boundary::PeriodicWithEndpoint {
            let required = format!("another boundary along {axis}, because {axis} is cut");
            return invalid("the boundary", boundary.to_string(), required);
        }
        if is_cut && boundary.is_periodic() != cut.is_periodic(axis.index()) {
            let required = format!("periodic along {axis} if and only if the grid is");
            return invalid("the decomposition", format!("{cut:?}"), required);
        }
        // A part has the grid's boundary only at the grid's own ends. At cuts it has ghost points:
        // only results at ghost points depend on the boundary that is set there.
        let boundary = match boundary {
            Boundary::Periodic if is_cut => Boundary::Dirichlet(0.0),
            own => own,
        };
        of_part = of_part.with_boundary(axis, boundary)?;
    }
    let of_part = FiniteDifferences3d::new(&of_part)?;
    Ok(of_part.with_accuracy(differences.accuracy())?)
}
