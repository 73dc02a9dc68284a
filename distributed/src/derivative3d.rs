//! Derivatives of fields that are shared by ranks.

use crate::{Communicator, Error, Ghosted};
use halo_gpu::derivative3d::{FiniteDifferences3d, Plan};
use halo_gpu::{Axis, Boundary, Grid3, Scalar, Shape3};

/// A plan of `differences` for a rank's part of a field, on its device. At the rank's own points
/// its results have the bits of one device. At ghost points they are meaningless.
///
/// `part` has at least [`radius`](FiniteDifferences3d::radius) planes of ghost points, which
/// are up to date when an operator is called, and its decomposition is periodic along the axes
/// along which the grid is. All fields of an operator are cut like `part`.
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
/// field of another shape, too few ghost points, other ends than the decomposition's, and for an
/// axis that is cut and [periodic with its end point](Boundary::PeriodicWithEndpoint), of which no
/// plane may be stored twice; [`Error::Device`] where a part is too thin for one-sided stencils.
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
        // The same at both ends, or there were no differences on the grid.
        let [boundary, _] = grid.ends(axis);
        let is_cut = cut.parts()[axis.index()] > 1;
        if is_cut && boundary == Boundary::PeriodicWithEndpoint {
            let required = format!("another one where {axis} is cut");
            return invalid("the boundary", boundary.to_string(), required);
        }
        if is_cut && boundary.is_periodic() != cut.is_periodic(axis.index()) {
            let required = format!("periodic along {axis} as the grid is, or not as it is not");
            return invalid("the decomposition", format!("{cut:?}"), required);
        }
        // A part has a boundary at its own ends alone, and ghost points where it has been cut,
        // which take what a boundary there makes wrong.
        let boundary = match boundary {
            Boundary::Periodic if is_cut => Boundary::Dirichlet(0.0),
            own => own,
        };
        of_part = of_part.with_boundary(axis, boundary)?;
    }
    let of_part = FiniteDifferences3d::new(&of_part)?.with_accuracy(differences.accuracy())?;
    Ok(of_part.plan(part.buffer().device())?)
}
