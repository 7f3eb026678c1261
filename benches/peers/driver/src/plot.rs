//! Two bar charts beside each other, as an SVG that reads well on light and on dark pages.

use std::fmt::Write;

use crate::report::number;

/// One chart: bars from zero, one for each server.
#[derive(Debug)]
pub struct Chart<'a> {
    pub title: &'a str,
    pub bars: Vec<(&'a str, f64)>,
}

const WIDTH: u32 = 440;
const ROW: u32 = 30;
const TOP: u32 = 56;
const NAME: u32 = 100;
const BAR: f64 = 230.0;

pub fn svg(charts: &[Chart<'_>]) -> String {
    let rows = charts.iter().map(|chart| chart.bars.len() as u32).max().unwrap_or(0);
    let (width, height) = (WIDTH * charts.len() as u32, TOP + ROW * rows + 16);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#24292f\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#ffffff\"/>\n"
    );
    for (index, chart) in charts.iter().enumerate() {
        let left = WIDTH * index as u32;
        let _ = writeln!(text, "<text x=\"{}\" y=\"32\" font-weight=\"600\">{}</text>", left + 16, escape(chart.title));
        let most = chart.bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        for (row, (name, value)) in chart.bars.iter().enumerate() {
            let y = TOP + ROW * row as u32;
            let length = if most > 0.0 { (BAR * value / most).max(1.0) } else { 1.0 };
            let colour = if *name == "mcp-channel" { "#0969da" } else { "#8c959f" };
            let bar = left + NAME;
            let _ = writeln!(text, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", bar - 8, y + 15, escape(name));
            let _ = writeln!(text, "<rect x=\"{bar}\" y=\"{y}\" width=\"{length:.1}\" height=\"20\" rx=\"2\" fill=\"{colour}\"/>");
            let _ = writeln!(text, "<text x=\"{:.1}\" y=\"{}\">{}</text>", f64::from(bar) + length + 6.0, y + 15, number(*value));
        }
    }
    text.push_str("</svg>\n");
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values() {
        let text = svg(&[Chart { title: "a < b", bars: vec![("one", 50.0), ("mcp-channel", 100.0)] }]);
        assert!(text.contains("a &lt; b"));
        assert!(text.contains("width=\"115.0\"") && text.contains("width=\"230.0\""), "{text}");
    }
}
