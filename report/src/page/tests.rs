//! Tests of the page and its charts, for records of every kind.

use roxmltree::{Document, Node};

use super::{html, svg_files};
use crate::palette::Colour;
use crate::record::Record;
use crate::sample;
use crate::stats::Times;

/// The page as XML: without the document type, and with the end tags that HTML leaves out.
fn markup(page: &str) -> String {
    let page = page
        .strip_prefix("<!DOCTYPE html>")
        .unwrap()
        .replace("<wbr>", "<wbr/>");
    let mut parts = page.split("<meta ");
    let mut markup = parts.next().unwrap().to_owned();
    for part in parts {
        markup += &format!("<meta {}", part.replacen('>', "/>", 1));
    }
    markup
}

fn elements<'a>(document: &'a Document<'_>, name: &str) -> Vec<Node<'a, 'a>> {
    document
        .descendants()
        .filter(|node| node.has_tag_name(name) || node.tag_name().name() == name)
        .collect()
}

/// The numbers in an attribute such as "M1 2L3 4" or "rotate(-45 1 2)".
fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.parse()
                .unwrap_or_else(|_| panic!("{word:?} in {text:?}"))
        })
        .collect()
}

fn number(node: Node<'_, '_>, attribute: &str) -> Option<f64> {
    node.attribute(attribute).map(|text| text.parse().unwrap())
}

/// Checks every drawing: finite numbers, nothing outside, colours that the dark style sheet knows,
/// a description, and a legend that does not cover data.
fn check_drawing(svg: Node<'_, '_>) {
    let view = numbers(svg.attribute("viewBox").unwrap());
    let (width, height) = (view[2], view[3]);
    let palette: Vec<String> = Colour::all().map(Colour::hex).collect();
    for node in svg.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            let what = format!("{name}={value:?} of <{}>", node.tag_name().name());
            match name {
                "x" | "x1" | "x2" | "cx" => {
                    let x: f64 = value.parse().unwrap();
                    assert!((-1.0..=width + 1.0).contains(&x), "{what}, width {width}");
                }
                "y" | "y1" | "y2" | "cy" => {
                    let y: f64 = value.parse().unwrap();
                    assert!(
                        (-1.0..=height + 1.0).contains(&y),
                        "{what}, height {height}"
                    );
                }
                "width" | "height" | "r" | "font-size" | "stroke-width" | "opacity" => {
                    let size: f64 = value.parse().unwrap();
                    assert!(size.is_finite() && size >= 0.0, "{what}");
                }
                "d" | "points" | "transform" | "viewBox" => {
                    assert!(
                        numbers(value).iter().all(|found| found.is_finite()),
                        "{what}"
                    );
                }
                "fill" | "stroke" => {
                    let known = value == "none" || palette.iter().any(|hex| hex == value);
                    assert!(known, "{what} has no dark form");
                }
                _ => {}
            }
            for word in ["NaN", "inf"] {
                let drawn = !matches!(name, "id" | "aria-labelledby");
                assert!(!(drawn && value.contains(word)), "{what}");
            }
        }
        // Paths of marks and lines are absolute, except for the arcs of circles.
        if let Some(d) = node.attribute("d").filter(|d| !d.contains('a')) {
            for pair in numbers(d).chunks(2) {
                assert!((-8.0..=width + 8.0).contains(&pair[0]), "{d}");
                assert!((-8.0..=height + 8.0).contains(&pair[1]), "{d}");
            }
        }
    }
    assert_eq!(svg.attribute("role"), Some("img"));
    for id in svg.attribute("aria-labelledby").unwrap().split(' ') {
        let words = svg
            .descendants()
            .find(|node| node.attribute("id") == Some(id))
            .and_then(|node| node.text());
        assert!(words.is_some_and(|words| words.len() > 10), "{id}");
    }
    let group = |class: &str| {
        svg.descendants()
            .find(|node| node.attribute("class") == Some(class))
            .unwrap()
    };
    let lowest_key = group("legend")
        .descendants()
        .filter_map(|node| number(node, "y"))
        .fold(0.0, f64::max);
    let top_of_plot = group("grid")
        .descendants()
        .filter_map(|node| number(node, "y1"))
        .fold(f64::MAX, f64::min);
    assert!(lowest_key < top_of_plot, "{lowest_key} and {top_of_plot}");
}

/// Checks the page and the files of a record. Returns the page.
fn check(record: &Record) -> String {
    let page = html(record);
    let markup = markup(&page);
    let document = Document::parse(&markup).unwrap();
    for svg in elements(&document, "svg") {
        check_drawing(svg);
    }

    let mut ids: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id occurs twice");

    // Nothing is loaded from another place.
    for node in document.descendants() {
        for attribute in node.attributes() {
            assert!(!matches!(
                attribute.name(),
                "src" | "href" | "data" | "srcset"
            ));
        }
    }
    let style: String = elements(&document, "style")
        .iter()
        .filter_map(|style| style.text())
        .collect();
    assert!(!style.contains("url(") && !style.contains("@import"));
    assert_eq!(elements(&document, "script").len(), 1);
    assert_eq!(elements(&document, "link").len(), 0);

    // Every row is in a table, under its whole name.
    let names: Vec<String> = elements(&document, "th")
        .iter()
        .filter(|head| head.attribute("scope") == Some("row"))
        .map(|head| {
            head.descendants()
                .filter(Node::is_text)
                .filter_map(|text| text.text())
                .collect()
        })
        .collect();
    let expect: Vec<String> = record.rows().map(|row| row.name.clone()).collect();
    assert_eq!(names, expect);
    // Every row has a cell in each column.
    for table in elements(&document, "table") {
        let rows: Vec<usize> = table
            .descendants()
            .filter(|node| node.has_tag_name("tr"))
            .map(|row| row.children().filter(Node::is_element).count())
            .collect();
        assert!(rows.iter().all(|cells| *cells == rows[0]), "{rows:?}");
    }

    let files = svg_files(record);
    for (name, svg) in &files {
        assert!(name.ends_with(".svg"));
        let document = Document::parse(svg).unwrap();
        check_drawing(document.root_element());
        assert!(svg.contains("prefers-color-scheme:dark"));
    }
    // Each chart is either on the page and a file, or left out with a reason.
    let left_out: String = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("left-out"))
        .filter_map(|node| node.text())
        .collect();
    let missing = left_out.matches('“').count();
    // All baselines share one reason where none took part, else each has a chart.
    let baselines = files
        .iter()
        .filter(|file| file.0.starts_with("ratios-"))
        .count();
    let expect = 2 + baselines.max(1) + record.families.len();
    assert_eq!(files.len() + missing, expect);
    assert_eq!(elements(&document, "figure").len(), files.len());
    page
}

/// The file of this name among the charts of a record.
fn file(record: &Record, name: &str) -> String {
    let files = svg_files(record);
    let found = files.into_iter().find(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("there is no {name}")).1
}

/// The marks of a chart's data: their tooltips, and whether they are filled.
fn marks(svg: &str) -> Vec<(String, bool)> {
    let document = Document::parse(svg).unwrap();
    let paper = Colour::Paper.hex();
    document
        .descendants()
        .filter(|node| node.attribute("class") == Some("mark"))
        .filter_map(|mark| {
            let title = mark
                .descendants()
                .find(|node| node.tag_name().name() == "title")?;
            let filled = mark.attribute("fill") != Some(paper.as_str());
            Some((title.text().unwrap().to_owned(), filled))
        })
        .collect()
}

/// The names of the kernels with a timed row.
fn timed_kernels(record: &Record) -> Vec<&str> {
    let mut names: Vec<&str> = record
        .rows()
        .filter(|row| row.single.is_some())
        .map(|row| row.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn a_record_of_everything_has_all_charts_and_all_rows() {
    let record = sample::whole();
    let page = check(&record);
    for part in [
        "Fixture GPU &lt;made up&gt;",
        "for CUDA 13.0",
        "13.0.88",
        "1.95.0",
        "22.1.2",
        "0123456789ab",
        "2026-01-31 12:00:00 UTC",
        "20 timed after 3 of warm-up; median, each launch between two CUDA events",
        "someone else; NOT COMPARED: there is none &amp; never was",
        "derivative3d_x_pencil4 was not run: a row of 512 does not fit",
        "a note &amp; &lt;more&gt;",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
    // The sample's stencil1d has one size.
    assert!(page.contains("“stencil1d: speed against size”: it was timed at one size only"));
    let names: Vec<String> = svg_files(&record)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            "roofline.svg",
            "ratios-nvcc.svg",
            "ratios-CUB.svg",
            "ratios-n-body-sample-style.svg",
            "limits.svg",
            "bandwidth-derivative3d.svg",
            "bandwidth-heat2d.svg",
            "throughput-nbody.svg",
            "bandwidth-reduction.svg",
        ]
    );
}

#[test]
fn the_roofline_has_a_filled_point_per_kernel_and_an_outline_per_baseline() {
    let record = sample::whole();
    let marks = marks(&file(&record, "roofline.svg"));
    for name in timed_kernels(&record) {
        let own = marks
            .iter()
            .filter(|(title, filled)| *filled && title.starts_with(&format!("{name}, ")))
            .count();
        assert_eq!(own, 1, "{name}");
    }
    let of = |who: &str| {
        marks
            .iter()
            .filter(|(title, filled)| !filled && title.starts_with(&format!("{who}: ")))
            .count()
    };
    // As many as the sample's kernels with such baselines at their largest size.
    assert_eq!(
        (of("nvcc"), of("CUB"), of("n-body sample style")),
        (23, 4, 2)
    );
    assert_eq!(of("absent"), 0);
}

#[test]
fn ratios_show_each_kernel_that_has_a_baseline_and_what_came_of_it() {
    let record = sample::whole();
    let of = [
        ("nvcc", "ratios-nvcc.svg"),
        ("CUB", "ratios-CUB.svg"),
        ("n-body sample style", "ratios-n-body-sample-style.svg"),
    ]
    .map(|(name, path)| (name, marks(&file(&record, path))));
    let svg = file(&record, "ratios-CUB.svg");
    for row in record.rows().filter(|row| row.single.is_some()) {
        for baseline in &row.baselines {
            let (_, marks) = of.iter().find(|of| of.0 == baseline.name).unwrap();
            let shown = marks.iter().any(|(title, _)| {
                title.starts_with(&format!("{}, ", row.name))
                    && title.contains(&format!("of {}'s time", baseline.name))
            });
            assert!(shown, "{} against {}", row.name, baseline.name);
        }
    }
    let document = Document::parse(&svg).unwrap();
    let texts: Vec<&str> = elements(&document, "text")
        .iter()
        .filter_map(|text| text.text())
        .map(str::trim)
        .collect();
    assert!(texts.contains(&"equal") && texts.contains(&"0.72"));
    // Names stand below their family's name and do not repeat it.
    assert!(texts.contains(&"reduction") && texts.contains(&"argmin_f32"));
}

#[test]
fn bandwidth_shows_cub_and_the_copy_and_what_a_launch_costs() {
    let record = sample::whole();
    let svg = file(&record, "bandwidth-reduction.svg");
    let document = Document::parse(&svg).unwrap();
    let texts: Vec<&str> = elements(&document, "text")
        .iter()
        .filter_map(|text| text.text())
        .map(str::trim)
        .collect();
    for text in [
        "Rust",
        "nvcc",
        "CUB",
        "Rust, launched once",
        "copy 4.00 TB/s",
    ] {
        assert!(texts.contains(&text), "{text} is not in {texts:?}");
    }
    let marks = marks(&svg);
    let sizes = record.families[3].problems.len();
    let of = |who: &str| {
        marks
            .iter()
            .filter(|(title, _)| title.starts_with(&format!("{who}: ")))
            .count()
    };
    assert_eq!(of("CUB"), sizes);
    assert!(of("launched once") >= 2);
    // Kernels with eight bytes an element are drawn, but not as the best of those with four.
    let doubles: Vec<bool> = marks
        .iter()
        .filter(|(title, _)| title.starts_with("reduction_sum_f64, "))
        .map(|(_, filled)| *filled)
        .collect();
    assert_eq!(doubles.len(), sizes);
}

#[test]
fn interactions_have_the_issue_limit_of_each_precision() {
    let svg = file(&sample::whole(), "throughput-nbody.svg");
    // 30 T slots a second, 13 an interaction; 15 T and 24.
    assert!(
        svg.contains("f32 issue limit 2.31 T interactions/s"),
        "{svg}"
    );
    assert!(svg.contains("f64 issue limit 625.0"), "{svg}");
}

#[test]
fn a_run_without_baselines_on_one_size_has_what_it_can() {
    let page = check(&sample::alone());
    assert!(page.contains("nobody else's kernels took part in this run"));
    let names: Vec<String> = svg_files(&sample::alone())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"roofline.svg".to_owned()));
    assert!(!names.iter().any(|name| name.starts_with("ratios")));
}

#[test]
fn a_run_on_the_emulator_has_no_chart_and_says_why() {
    let record = sample::untimed();
    let page = check(&record);
    assert!(svg_files(&record).is_empty());
    assert!(page.contains("no ceiling was measured in this run"));
    assert!(page.contains("none of its rows was timed"));
    assert!(!page.contains("time, single launch") && !page.contains(" TB/s"));
    assert!(page.contains("RMS error"));
}

#[test]
fn records_with_nothing_in_them_are_pages_too() {
    check(&sample::record(Vec::new()));
    let mut empty = sample::record(Vec::new());
    empty.families[0].problems.clear();
    check(&empty);
    empty.families.clear();
    check(&empty);
}

#[test]
fn one_kernel_at_one_size_is_enough_for_a_chart() {
    let record = sample::record(vec![sample::row("derivative3d_only", 1e-5)]);
    check(&record);
    let names: Vec<String> = svg_files(&record)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["roofline.svg", "limits.svg"]);
}

/// Every time of a record, with the number of its row.
fn times(record: &mut Record) -> impl Iterator<Item = (usize, &mut Times)> {
    let problems = record
        .families
        .iter_mut()
        .flat_map(|family| &mut family.problems);
    let rows = problems.flat_map(|problem| &mut problem.rows).enumerate();
    rows.flat_map(|(index, row)| {
        let others = row
            .baselines
            .iter_mut()
            .flat_map(|it| [&mut it.single, &mut it.replayed]);
        let all = [&mut row.single, &mut row.replayed]
            .into_iter()
            .chain(others);
        all.flatten().map(move |time| (index, time))
    })
}

#[test]
fn times_of_any_size_stay_on_the_page() {
    let extremes = [0.0, 1e-300, 1e-9, 1.0, 1e9, 1e300, f64::INFINITY, f64::NAN];
    // Each extreme is `first` once, and `second` once.
    let page_of = |index: usize| {
        let (first, second) = (extremes[index], extremes[(3 * index + 1) % extremes.len()]);
        let mut record = sample::whole();
        for (turn, (row, time)) in times(&mut record).enumerate() {
            // Neighbours differ, and so do a row and its baseline.
            time.median_s = if (row + turn) % 2 == 0 { first } else { second };
            time.relative_spread = second;
        }
        check(&record);
        let ceilings = &mut record.ceilings;
        for ceiling in [&mut ceilings.copy, &mut ceilings.fp32, &mut ceilings.fp64] {
            ceiling.as_mut().unwrap().time.median_s = first;
        }
        check(&record);
    };
    (0..extremes.len()).for_each(page_of);
}

#[test]
fn ratios_without_spread_have_a_band_of_no_width() {
    let mut record = sample::whole();
    for (_, time) in times(&mut record) {
        time.relative_spread = 0.0;
    }
    check(&record);
}

#[test]
fn words_of_the_record_are_never_markup() {
    const HOSTILE: &str = "</title></script><script>alert(\"&\")</script><!-- ]]> '\u{1}";
    let mut record = sample::whole();
    let environment = &mut record.environment;
    for text in [
        &mut environment.device.name,
        &mut environment.device.kind,
        &mut environment.rustc,
        &mut environment.llvm,
        &mut environment.date,
    ] {
        text.push_str(HOSTILE);
    }
    environment.device.why = Some(HOSTILE.to_owned());
    environment.commit = Some(HOSTILE.to_owned());
    record.timing = Some(HOSTILE.to_owned());
    for baseline in &mut record.baselines {
        baseline.name.push_str(HOSTILE);
        baseline.what.push_str(HOSTILE);
        baseline.why_not = Some(HOSTILE.to_owned());
    }
    for family in &mut record.families {
        family.name.push_str(HOSTILE);
        for problem in &mut family.problems {
            problem.size.push_str(HOSTILE);
            problem.problem.push_str(HOSTILE);
            problem.notes.push(HOSTILE.to_owned());
            for row in &mut problem.rows {
                row.name.push_str(HOSTILE);
                row.tile.push_str(HOSTILE);
                for baseline in &mut row.baselines {
                    baseline.name.push_str(HOSTILE);
                    baseline.why_not = Some(HOSTILE.to_owned());
                }
            }
        }
    }
    // Control characters cannot be in XML at all.
    let hostile = HOSTILE.replace('\u{1}', "\u{fffd}");
    let markup = markup(&html(&record));
    let document = Document::parse(&markup).unwrap();
    assert_eq!(elements(&document, "script").len(), 1);
    let title = elements(&document, "title")[0].text().unwrap();
    assert_eq!(
        title,
        format!("Halo benchmark: Fixture GPU <made up>{hostile}")
    );
    for (name, svg) in svg_files(&record) {
        let document = Document::parse(&svg).unwrap();
        assert!(elements(&document, "script").is_empty());
        assert!(
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
            "{name} is no file name"
        );
    }
}
