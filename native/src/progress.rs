//! Progress on stderr: a bar with rate and ETA on a terminal, a plain line every 30 s elsewhere.

use std::{
    io::IsTerminal,
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How progress is shown (`--progress`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ProgressMode {
    /// A bar on a terminal, otherwise a line every 30 s.
    #[default]
    Auto,
    /// A bar even if stderr is no terminal.
    Bar,
    /// A line every 30 s, without control characters.
    Plain,
    /// Nothing.
    None,
}

/// Makes bars; also the place for messages, so that they do not tear a bar.
#[derive(Debug)]
pub struct Progress {
    mode: ProgressMode,
}

const PLAIN_EVERY: Duration = Duration::from_secs(30);

impl Progress {
    /// Settles `Auto` by asking whether stderr is a terminal.
    pub fn new(mode: ProgressMode) -> Self {
        let mode = match mode {
            ProgressMode::Auto if std::io::stderr().is_terminal() => ProgressMode::Bar,
            ProgressMode::Auto => ProgressMode::Plain,
            other => other,
        };
        Progress { mode }
    }

    /// A task of `total` units (0 = unknown) called `unit`, e.g. `games`.
    pub fn task(&self, label: &str, total: u64, unit: &'static str) -> Task {
        let bar = match self.mode {
            ProgressMode::Bar => {
                let bar = ProgressBar::with_draw_target(
                    (total > 0).then_some(total),
                    ProgressDrawTarget::stderr_with_hz(5),
                );
                let template = if unit == "bytes" {
                    "{prefix} {wide_bar} {percent:>3} % {msg} eta {eta}".to_string()
                } else if total > 0 {
                    format!(
                        "{{prefix}} {{wide_bar}} {{human_pos}}/{{human_len}} {unit} {{per_sec}} {{msg}} eta {{eta}}"
                    )
                } else {
                    format!("{{prefix}} {{spinner}} {{human_pos}} {unit} {{per_sec}} {{msg}}")
                };
                if let Ok(style) = ProgressStyle::with_template(&template) {
                    bar.set_style(style);
                }
                bar.set_prefix(label.to_string());
                bar
            }
            _ => ProgressBar::hidden(),
        };
        let now = Instant::now();
        Task {
            bar,
            plain: (self.mode == ProgressMode::Plain).then(|| {
                Mutex::new(Plain {
                    label: label.to_string(),
                    unit,
                    total,
                    begun_at: 0,
                    done: 0,
                    message: String::new(),
                    started: now,
                    printed: now,
                })
            }),
        }
    }

    /// A line for the reader that is no result; silent under `--progress none`.
    pub fn note(&self, message: &str) {
        if self.mode != ProgressMode::None {
            eprintln!("{message}");
        }
    }

    /// A line about something that went wrong without ending the job; never silent.
    pub fn warn(&self, message: &str) {
        eprintln!("warning: {message}");
    }
}

/// One running task; finishing or dropping it removes the bar.
#[derive(Debug)]
pub struct Task {
    bar: ProgressBar,
    plain: Option<Mutex<Plain>>,
}

#[derive(Debug)]
struct Plain {
    label: String,
    unit: &'static str,
    total: u64,
    /// Units that were done before.
    begun_at: u64,
    done: u64,
    message: String,
    started: Instant,
    printed: Instant,
}

impl Task {
    /// Counts `units` as done in an earlier session: they say nothing of how fast this one is.
    pub fn begin_at(&self, units: u64) {
        self.bar.set_position(units);
        self.bar.reset_eta();
        if let Some(plain) = &self.plain
            && let Ok(mut plain) = plain.lock()
        {
            (plain.begun_at, plain.done) = (units, units);
        }
    }

    /// Counts `units` more as done.
    pub fn advance(&self, units: u64) {
        self.bar.inc(units);
        if let Some(plain) = &self.plain
            && let Ok(mut plain) = plain.lock()
        {
            plain.done += units;
            plain.print_if_due();
        }
    }

    /// Sets what is shown beside the numbers.
    pub fn message(&self, message: String) {
        if let Some(plain) = &self.plain
            && let Ok(mut plain) = plain.lock()
        {
            plain.message.clone_from(&message);
        }
        self.bar.set_message(message);
    }

    /// Prints a line above the bar (stderr).
    pub fn println(&self, line: &str) {
        if self.plain.is_some() {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Plain {
    fn print_if_due(&mut self) {
        if self.printed.elapsed() < PLAIN_EVERY {
            return;
        }
        self.printed = Instant::now();
        eprintln!("{}", self.line(self.started.elapsed().as_secs_f64()));
    }

    /// How things stand after `secs`.
    fn line(&self, secs: f64) -> String {
        let rate = (self.done - self.begun_at) as f64 / secs;
        let mut line = format!("{}: {} {}, {rate:.0}/s", self.label, self.done, self.unit);
        if self.total > 0 && rate > 0.0 {
            let left = self.total.saturating_sub(self.done) as f64 / rate;
            line += &format!(" of {}, eta {left:.0} s", self.total);
        }
        if !self.message.is_empty() {
            line += &format!(", {}", self.message);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_says_nothing_of_speed() {
        let task = Progress::new(ProgressMode::Plain).task("training", 2000, "steps");
        let line = || task.plain.as_ref().unwrap().lock().unwrap().line(10.0);
        task.begin_at(1000);
        assert_eq!(line(), "training: 1000 steps, 0/s");
        task.advance(100);
        assert_eq!(line(), "training: 1100 steps, 10/s of 2000, eta 90 s");
    }
}
