//! Charts of a record of ranks: efficiency against the number of ranks, measured and by the model.

use super::record::{ScalingRecord, ScalingRow};
use crate::axis::{Axis, Scale};
use crate::canvas::{Canvas, Frame, Key, Mark, Pen, Width};
use crate::figure::{Figure, LeftOut, Outcome};
use crate::palette::{Colour, Shape};
use crate::units::duration;

/// "strong" or "weak".
pub(super) const fn way(weak: bool) -> &'static str {
    if weak { "weak" } else { "strong" }
}

/// A problem; its number decides its colour.
struct Curve {
    hue: usize,
    label: String,
    /// Ranks, efficiency, and tooltip.
    measured: Vec<(f64, f64, String)>,
    model: Vec<(f64, f64)>,
}

/// Strong and weak scaling, drawn or left out.
pub(super) fn all(record: &ScalingRecord) -> Vec<Outcome<'_>> {
    [false, true].map(|weak| figure(record, weak)).into()
}

fn figure(record: &ScalingRecord, weak: bool) -> Outcome<'_> {
    let way = way(weak);
    let title = format!("Efficiency, {way} scaling");
    let problems = record.alone().filter(|row| row.weak == weak);
    let curves: Vec<Curve> = problems
        .enumerate()
        .map(|(hue, alone)| curve(record, hue, alone))
        .collect();
    if curves
        .iter()
        .all(|it| it.measured.len() + it.model.len() < 2)
    {
        return Err(LeftOut::new(&title, "it needs more than one rank"));
    }
    let what = if weak {
        "each rank has as much work as one rank alone"
    } else {
        "the ranks share the problem of one rank"
    };
    let has_model = curves.iter().any(|it| !it.model.is_empty());
    let lines = if has_model {
        "; lines: the model, with the assumptions below its table"
    } else {
        ""
    };
    let last = curves.iter().filter_map(|curve| {
        let (ranks, efficiency, _) = curve.measured.last()?;
        Some(format!("{}: {efficiency:.3} on {ranks} ranks", curve.label))
    });
    let description = format!(
        "Efficiency against the number of ranks. Measured: {}.",
        last.collect::<Vec<_>>().join("; ")
    );
    Ok(Figure {
        slug: format!("scaling-{way}"),
        title,
        caption: format!(
            "Efficiency: the time of one rank over that of so many, where {what}. Marks: measured \
             on up to {} ranks{lines}.",
            record.ranks
        ),
        description,
        draw: Box::new(move |width| draw(&curves, width)),
        small: false,
    })
}

fn curve(record: &ScalingRecord, hue: usize, alone: &ScalingRow) -> Curve {
    let label = format!("{} {}", alone.family, alone.size)
        .trim_end()
        .to_owned();
    let mut measured: Vec<_> = record
        .rows
        .iter()
        .filter(|row| record.on(row, 1).is_some_and(|it| std::ptr::eq(it, alone)))
        .filter_map(|row| {
            let efficiency = record.efficiency(row)?;
            let (ranks, time) = (row.ranks, duration(row.both_s));
            let title = format!("{label}\n{ranks} ranks: {time}, efficiency {efficiency:.3}");
            Some((ranks as f64, efficiency, title))
        })
        .collect();
    measured.sort_by(|a, b| a.0.total_cmp(&b.0));
    let one = record.model(alone, 1).map(|it| it.all_s());
    let model = record.projected().into_iter().filter_map(|ranks| {
        let all = record.model(alone, ranks)?.all_s();
        Some((ranks as f64, one? / (alone.shares(ranks) * all)))
    });
    Curve {
        hue,
        model: model.collect(),
        measured,
        label,
    }
}

fn draw(curves: &[Curve], width: Width) -> Canvas {
    let mark = |curve: &Curve, radius| Mark {
        shape: Shape::of(curve.hue),
        colour: Colour::Hue(curve.hue),
        filled: true,
        radius,
    };
    let pen = |curve: &Curve| Pen::solid(Colour::Hue(curve.hue), 1.8);
    let keys = curves.iter().map(|curve| Key {
        pen: (!curve.model.is_empty()).then(|| pen(curve)),
        mark: Some(mark(curve, 4.5)),
        label: curve.label.clone(),
    });
    let keys: Vec<Key> = keys.collect();
    let measured = || curves.iter().flat_map(|it| &it.measured);
    let modelled = || curves.iter().flat_map(|it| &it.model);
    let ranks = measured().map(|it| it.0).chain(modelled().map(|it| it.0));
    let values = measured().map(|it| it.1).chain(modelled().map(|it| it.1));
    let mut canvas = Canvas::new(Frame {
        width,
        plot_height: width.pick(320.0, 260.0),
        left: 56.0,
        right: 14.0,
        x: Axis::around("ranks", Scale::Octaves, ranks, width.pick(13, 7)),
        y: Some(Axis::from_zero("efficiency", values, 6)),
        legend: &keys,
    });
    for curve in curves {
        canvas.line(&curve.model, pen(curve), &curve.label);
    }
    for curve in curves {
        for (ranks, efficiency, title) in &curve.measured {
            canvas.mark(
                (*ranks, *efficiency),
                mark(curve, width.pick(4.6, 3.8)),
                title,
            );
        }
    }
    canvas
}
