//! The table: what was measured, as text for people.

use std::fmt::Write;

/// How a row's numbers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// With the ratio to the bare server.
    Ratio,
    /// Alone.
    Plain,
}

/// One measure of all servers.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub label: String,
    pub show: Show,
    /// For each server what each round gave. Empty: not measured.
    pub rounds: Vec<Vec<f64>>,
}

/// All rows, under headings.
#[derive(Debug)]
pub struct Table {
    pub servers: Vec<&'static str>,
    sections: Vec<(String, Vec<Row>)>,
}

impl Table {
    pub fn new(servers: Vec<&'static str>) -> Self {
        Self { servers, sections: Vec::new() }
    }

    /// Begins a part of the table.
    pub fn section(&mut self, heading: &str) {
        self.sections.push((heading.to_owned(), Vec::new()));
    }

    /// Adds what one round gave for one server; the row is made when it is new.
    pub fn add(&mut self, id: &str, label: &str, show: Show, server: usize, value: f64) {
        let servers = self.servers.len();
        let (_, rows) = self.sections.last_mut().expect("a section is begun first");
        let at = rows.iter().position(|row| row.id == id).unwrap_or_else(|| {
            rows.push(Row { id: id.to_owned(), label: label.to_owned(), show, rounds: vec![Vec::new(); servers] });
            rows.len() - 1
        });
        rows[at].rounds[server].push(value);
    }

    /// The median of a measure's rounds.
    pub fn value(&self, id: &str, server: &str) -> Option<f64> {
        let server = self.servers.iter().position(|name| *name == server)?;
        self.row(id)?.median(server)
    }

    /// The median of a measure's ratios, round by round, of one server to another.
    pub fn ratio(&self, id: &str, server: &str, to: &str) -> Option<f64> {
        let place = |name| self.servers.iter().position(|server| *server == name);
        self.row(id)?.ratio(place(server)?, place(to)?)
    }

    fn row(&self, id: &str) -> Option<&Row> {
        self.sections.iter().flat_map(|(_, rows)| rows).find(|row| row.id == id)
    }

    pub fn markdown(&self) -> String {
        let mut text = String::from("| |");
        for server in &self.servers {
            let _ = write!(text, " {server} |");
        }
        text.push_str("\n| --- |");
        text.push_str(&" ---: |".repeat(self.servers.len()));
        text.push('\n');
        let bare = self.servers.iter().position(|server| *server == "bare");
        for (heading, rows) in &self.sections {
            let _ = writeln!(text, "| **{heading}** |{}", " |".repeat(self.servers.len()));
            for row in rows {
                let _ = write!(text, "| {} |", row.label);
                for server in 0..self.servers.len() {
                    let _ = write!(text, " {} |", row.cell(server, bare));
                }
                text.push('\n');
            }
        }
        text
    }
}

impl Row {
    fn median(&self, server: usize) -> Option<f64> {
        let mut rounds = self.rounds[server].clone();
        (!rounds.is_empty()).then(|| harness::median(&mut rounds))
    }

    fn ratio(&self, server: usize, to: usize) -> Option<f64> {
        let mut ratios: Vec<f64> = self.rounds[server].iter().zip(&self.rounds[to]).map(|(value, base)| value / base).collect();
        (!ratios.is_empty()).then(|| harness::median(&mut ratios))
    }

    fn cell(&self, server: usize, bare: Option<usize>) -> String {
        let Some(median) = self.median(server) else {
            return "–".to_owned();
        };
        let value = number(median);
        match bare
            .filter(|&bare| self.show == Show::Ratio && bare != server && median.is_finite())
            .and_then(|bare| self.ratio(server, bare))
        {
            Some(ratio) if ratio.is_finite() => format!("{value} (×{})", number(ratio)),
            _ => value,
        }
    }
}

/// Three significant digits, thousands apart; infinity is what never came.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "never".to_owned();
    }
    let size = value.abs();
    if size > 0.0 && size < 0.0005 {
        return "<0.001".to_owned();
    }
    let decimals = match size {
        _ if size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(whole, fraction)| (whole, fraction));
    let fraction = fraction.trim_end_matches('0');
    let digits = whole.trim_start_matches('-');
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if whole.starts_with('-') { "−" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

/// Puts a text between two marks of a document.
pub fn replace_between(document: &str, begin: &str, end: &str, text: &str) -> Option<String> {
    let from = document.find(begin)? + begin.len();
    let to = from + document[from..].find(end)?;
    Some(format!("{}\n\n{}\n\n{}", &document[..from], text.trim(), &document[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_groups() {
        for (value, text) in [
            (1_234_567.0, "1,234,567"),
            (123.4, "123"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (1.0, "1"),
            (0.02, "0.02"),
            (0.0001, "<0.001"),
            (0.0, "0"),
            (-1500.0, "−1,500"),
            (f64::INFINITY, "never"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_ratios() {
        let mut table = Table::new(vec!["bare", "other"]);
        table.section("S");
        for (bare, other) in [(10.0, 20.0), (100.0, 500.0), (1.0, 3.0)] {
            table.add("m", "measure", Show::Ratio, 0, bare);
            table.add("m", "measure", Show::Ratio, 1, other);
        }
        assert_eq!(table.ratio("m", "other", "bare"), Some(3.0));
        assert!(table.markdown().contains("| measure | 10 | 20 (×3) |"), "{}", table.markdown());
    }

    #[test]
    fn the_page_has_the_marks() {
        let page = include_str!("../../../README.md");
        assert!(replace_between(page, crate::BEGIN, crate::END, "table").is_some());
    }

    #[test]
    fn the_marks_stay() {
        let text = replace_between("a <b> old <e> c", "<b>", "<e>", "new").expect("both marks");
        assert_eq!(text, "a <b>\n\nnew\n\n<e> c");
        assert_eq!(replace_between(&text, "<b>", "<e>", "new"), Some(text.clone()));
        assert_eq!(replace_between("a", "<b>", "<e>", "new"), None);
    }
}
