//! Facts about the page and its charts, for reports of every kind.

use roxmltree::{Document, Node};

use super::super::report::fake;
use super::super::report::{Measured, Report};
use super::super::sample;
use super::super::stats::{Ratio, Times, Verdict};
use super::palette::Colour;
use super::{html, svg_files};

/// The page without what XML does not know: the document type.
fn markup(page: &str) -> &str {
    page.strip_prefix("<!DOCTYPE html>\n").unwrap()
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

/// What holds for every drawing: finite numbers, nothing outside of it, colours
/// that the dark style sheet knows, words for those who cannot see it, and a
/// legend that is clear of the data.
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
        // Paths of marks and lines are absolute, but for the arcs of circles.
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

/// What holds for the page and the files of every report. Returns the page.
fn check(report: &Report) -> String {
    let page = html(report).unwrap();
    let document = Document::parse(markup(&page)).unwrap();
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

    // Nothing is loaded from elsewhere.
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
    let expect: Vec<String> = report.rows().map(|row| row.name.clone()).collect();
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

    let files = svg_files(report).unwrap();
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
    // All rivals share one reason where none took part, else each has a chart.
    let rivals = files
        .iter()
        .filter(|file| file.0.starts_with("ratios-"))
        .count();
    let expect = 2 + rivals.max(1) + report.families.len();
    assert_eq!(files.len() + missing, expect);
    assert_eq!(elements(&document, "figure").len(), files.len());
    page
}

/// The file of this name among the charts of a report.
fn file(report: &Report, name: &str) -> String {
    let files = svg_files(report).unwrap();
    let found = files.into_iter().find(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("there is no {name}")).1
}

/// The marks among the data of a chart: what their tooltips say, and whether they
/// are filled.
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

/// The names of the kernels that some row of has a time.
fn timed_kernels(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = report
        .rows()
        .filter(|row| row.single.is_some())
        .map(|row| row.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn a_report_of_everything_has_all_charts_and_all_rows() {
    let report = sample::report();
    let page = check(&report);
    for part in [
        "Fixture GPU &lt;made up&gt;",
        "for CUDA 13.0",
        "nvcc 13.0.88",
        "1.95.0",
        "22.1.2",
        "0123456789ab",
        "2026-01-31 12:00:00 UTC",
        "20 launches timed after 3 of warm-up; median, each launch between two CUDA events",
        "someone else; took no part: there is none &amp; never was",
        "derivative3d_x_pencil4 was not run: a row of 512 does not fit",
        "a note &amp; &lt;more&gt;",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
    // The sample's stencil1d has one size.
    assert!(page.contains("“stencil1d: speed against size”: it was timed at one size only"));
    let names: Vec<String> = svg_files(&report)
        .unwrap()
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
fn the_roofline_has_a_filled_point_per_kernel_and_an_outline_per_rival() {
    let report = sample::report();
    let marks = marks(&file(&report, "roofline.svg"));
    for name in timed_kernels(&report) {
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
    // As many as the sample's kernels have such rivals at their largest size.
    assert_eq!(
        (of("nvcc"), of("CUB"), of("n-body sample style")),
        (23, 4, 2)
    );
    assert_eq!(of("absent"), 0);
}

#[test]
fn ratios_show_each_kernel_that_has_a_rival_and_what_came_of_it() {
    let report = sample::report();
    let of = [
        ("nvcc", "ratios-nvcc.svg"),
        ("CUB", "ratios-CUB.svg"),
        ("n-body sample style", "ratios-n-body-sample-style.svg"),
    ]
    .map(|(name, path)| (name, marks(&file(&report, path))));
    let svg = file(&report, "ratios-CUB.svg");
    for row in report.rows().filter(|row| row.single.is_some()) {
        for contender in &row.contenders {
            let (_, marks) = of.iter().find(|of| of.0 == contender.name).unwrap();
            let shown = marks.iter().any(|(title, _)| {
                title.starts_with(&format!("{}, ", row.name))
                    && title.contains(&format!("of {}'s time", contender.name))
            });
            assert!(shown, "{} against {}", row.name, contender.name);
        }
    }
    let document = Document::parse(&svg).unwrap();
    let texts: Vec<&str> = elements(&document, "text")
        .iter()
        .filter_map(|text| text.text())
        .map(str::trim)
        .collect();
    assert!(texts.contains(&"equal") && texts.contains(&"0.72"));
    // Names stand below their family's, so they are shown without it.
    assert!(texts.contains(&"reduction") && texts.contains(&"argmin_f32"));
}

#[test]
fn bandwidth_shows_cub_and_the_copy_and_what_a_launch_costs() {
    let report = sample::report();
    let svg = file(&report, "bandwidth-reduction.svg");
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
    let sizes = report.families[3].problems.len();
    let of = |who: &str| {
        marks
            .iter()
            .filter(|(title, _)| title.starts_with(&format!("{who}: ")))
            .count()
    };
    assert_eq!(of("CUB"), sizes);
    assert!(of("launched once") >= 2);
    // Kernels on eight bytes an element are drawn, but not as the best of those on four.
    let doubles: Vec<bool> = marks
        .iter()
        .filter(|(title, _)| title.starts_with("reduction_sum_f64, "))
        .map(|(_, filled)| *filled)
        .collect();
    assert_eq!(doubles.len(), sizes);
}

#[test]
fn interactions_have_the_issue_limit_of_each_precision() {
    let svg = file(&sample::report(), "throughput-nbody.svg");
    // 30 T slots a second, 13 an interaction; 15 T and 24.
    assert!(
        svg.contains("f32 issue limit 2.31 T interactions/s"),
        "{svg}"
    );
    assert!(svg.contains("f64 issue limit 625.0"), "{svg}");
}

#[test]
fn a_run_without_rivals_on_one_size_has_what_it_can() {
    let page = check(&sample::alone());
    assert!(page.contains("nobody else&#39;s kernels took part in this run"));
    let names: Vec<String> = svg_files(&sample::alone())
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"roofline.svg".to_owned()));
    assert!(!names.iter().any(|name| name.starts_with("ratios")));
}

#[test]
fn a_run_on_the_emulator_has_no_chart_and_says_why() {
    let report = sample::untimed();
    let page = check(&report);
    assert!(svg_files(&report).unwrap().is_empty());
    assert!(page.contains("no ceiling was measured in this run"));
    assert!(page.contains("nothing was timed of it"));
    assert!(!page.contains("time, single launch") && !page.contains(" TB/s"));
    assert!(page.contains("RMS error"));
}

#[test]
fn reports_with_nothing_in_them_are_pages_too() {
    check(&fake::report(Vec::new()));
    let mut empty = fake::report(Vec::new());
    empty.families[0].problems.clear();
    check(&empty);
    empty.families.clear();
    check(&empty);
}

#[test]
fn one_kernel_at_one_size_is_enough_for_a_chart() {
    let report = fake::report(vec![fake::row("derivative3d_only", 1e-5)]);
    check(&report);
    let names: Vec<String> = svg_files(&report)
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["roofline.svg", "limits.svg"]);
}

#[test]
fn times_and_ratios_of_any_size_stay_on_the_page() {
    let ratio = |value: f64, spread: f64| Ratio {
        value,
        spread,
        verdict: Verdict::Slower,
    };
    let extremes = [0.0, 1e-300, 1e-9, 1.0, 1e9, 1e300, f64::INFINITY, f64::NAN];
    for apart in [1, 3, 6] {
        for (index, first) in extremes.into_iter().enumerate() {
            let second = extremes[(index + apart) % extremes.len()];
            let mut report = sample::report();
            let ceilings = std::mem::take(&mut report.ceilings);
            let mut index = 0;
            for family in &mut report.families {
                for row in family
                    .problems
                    .iter_mut()
                    .flat_map(|problem| &mut problem.rows)
                {
                    index += 1;
                    let median_s = if index % 2 == 0 { first } else { second };
                    let time = |time: Times| Times { median_s, ..time };
                    for measured in [&mut row.single, &mut row.replayed].into_iter().flatten() {
                        let time = time(measured.time);
                        *measured = Measured::new(&row.work, time, 1, &ceilings);
                    }
                    for contender in &mut row.contenders {
                        let modes = [&mut contender.single, &mut contender.replayed];
                        for against in modes.into_iter().flatten() {
                            against.time = time(against.time);
                            against.ratio = ratio(second, first);
                        }
                    }
                }
            }
            report.ceilings = ceilings;
            check(&report);
            for ceiling in [
                &mut report.ceilings.copy,
                &mut report.ceilings.fp32,
                &mut report.ceilings.fp64,
            ]
            .into_iter()
            .flatten()
            {
                ceiling.per_s = first;
            }
            check(&report);
        }
    }
}

#[test]
fn ratios_without_spread_have_a_band_of_no_width() {
    let mut report = sample::report();
    for family in &mut report.families {
        for row in family
            .problems
            .iter_mut()
            .flat_map(|problem| &mut problem.rows)
        {
            for contender in &mut row.contenders {
                let modes = [&mut contender.single, &mut contender.replayed];
                for against in modes.into_iter().flatten() {
                    against.ratio.spread = 0.0;
                }
            }
        }
    }
    check(&report);
}

#[test]
fn words_of_the_report_are_never_markup() {
    const HOSTILE: &str = "</title></script><script>alert(\"&\")</script><!-- ]]> '\u{1}";
    let mut report = sample::report();
    let environment = &mut report.environment;
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
    report.timing = Some(HOSTILE.to_owned());
    for rival in &mut report.rivals {
        rival.name.push_str(HOSTILE);
        rival.what.push_str(HOSTILE);
        rival.why_not = Some(HOSTILE.to_owned());
    }
    for family in &mut report.families {
        family.name.push_str(HOSTILE);
        for problem in &mut family.problems {
            problem.size.push_str(HOSTILE);
            problem.problem.push_str(HOSTILE);
            problem.notes.push(HOSTILE.to_owned());
            for row in &mut problem.rows {
                row.name.push_str(HOSTILE);
                row.tile.push_str(HOSTILE);
                for contender in &mut row.contenders {
                    contender.name.push_str(HOSTILE);
                    contender.why_not = Some(HOSTILE.to_owned());
                }
            }
        }
    }
    // Control characters cannot be in XML at all.
    let hostile = HOSTILE.replace('\u{1}', "\u{fffd}");
    let page = html(&report).unwrap();
    let document = Document::parse(markup(&page)).unwrap();
    assert_eq!(elements(&document, "script").len(), 1);
    let title = elements(&document, "title")[0].text().unwrap();
    assert_eq!(
        title,
        format!("Halo benchmark: Fixture GPU <made up>{hostile}")
    );
    for (name, svg) in svg_files(&report).unwrap() {
        let document = Document::parse(&svg).unwrap();
        assert!(elements(&document, "script").is_empty());
        assert!(
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
            "{name} is no file name"
        );
    }
}
