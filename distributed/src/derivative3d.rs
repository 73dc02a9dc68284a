//! Derivatives of fields that several ranks share.

use crate::{Communicator, Error, Ghosted};
use halo_gpu::derivative3d::{FiniteDifferences3d, Plan};
use halo_gpu::{Axis, Boundary, Grid3, Scalar, Shape3};

/// A plan of `differences` for a rank's part of a field, on its device. At the rank's own points
/// the results have the bits of one device; at ghost points they are meaningless.
///
/// `part` has at least [`radius`](FiniteDifferences3d::radius) planes of ghost points, which must
/// be up to date when an operator is called. Its decomposition is periodic along the same axes as
/// the grid. All fields of an operator have the decomposition of `part`.
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
///     let part = derivative3d::on_part(&communicator, &differences, &f)?;
///     f.exchange(&communicator)?;
///     part.laplacian(f.buffer(), laplacian.buffer_mut())?;
///     laplacian.gather(&communicator)
/// })?;
/// assert!(several.iter().all(|laplacian| laplacian == one.as_slice()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Disagreement`] unless all ranks give the same grid; [`Error::InvalidParameter`] for a
/// field of another shape, too few ghost points, a grid and a decomposition that are not periodic
/// along the same axes, and a cut along an axis that is [periodic with its end
/// point](Boundary::PeriodicWithEndpoint), because no plane may be stored twice; [`Error::Device`]
/// if a part is too thin for one-sided stencils.
pub fn on_part<T: Scalar>(
    communicator: &Communicator,
    differences: &FiniteDifferences3d<T>,
    part: &Ghosted<T, 3>,
) -> Result<Plan<T>, Error> {
    let grid = differences.grid();
    communicator.agree("the grid", &(grid, differences.accuracy()))?;
    let invalid = |parameter, given: String, required| {
        Err(Error::InvalidParameter {
            operation: "derivatives on a part of a field",
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
        // A part has the grid's boundary only at the grid's own ends. At cuts it has ghost points,
        // and only their results depend on the boundary that is set there.
        let boundary = match boundary {
            Boundary::Periodic if is_cut => Boundary::Dirichlet(0.0),
            own => own,
        };
        of_part = of_part.with_boundary(axis, boundary)?;
    }
    let of_part = FiniteDifferences3d::new(&of_part)?.with_accuracy(differences.accuracy())?;
    Ok(of_part.plan(part.buffer().device())?)
}
