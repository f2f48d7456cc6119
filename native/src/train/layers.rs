//! A config in layers: defaults < preset < file < `CWM_*` environment < `--set` < flags, each value with its source.
//!
//! Keys are dotted (`optimizer.lr`). The defaults define which keys exist and what type each has.

use std::{collections::BTreeMap, fmt};

use toml::{Table, Value, de::DeTable};

use crate::exit::Failure;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Built in.
    Default,
    /// A named preset.
    Preset(String),
    /// A line of a config file.
    File(String, usize),
    /// An environment variable.
    Env(String),
    /// `--set`.
    Set,
    /// A flag of its own.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Preset(name) => write!(f, "preset {name}"),
            Source::File(path, line) => write!(f, "{path}:{line}"),
            Source::Env(name) => write!(f, "${name}"),
            Source::Set => f.write_str("--set"),
            Source::Flag(flag) => f.write_str(flag),
        }
    }
}

/// The merged values.
#[derive(Debug, Clone)]
pub struct Layers {
    values: BTreeMap<String, (Value, Source)>,
}

impl Layers {
    /// Starts from the complete table of defaults.
    pub fn new(defaults: &Table) -> Self {
        let mut values = BTreeMap::new();
        flatten("", defaults, &mut |key, value| {
            values.insert(key, (value.clone(), Source::Default));
        });
        Layers { values }
    }

    /// Lays a TOML text over what is there; `source` names where a line of it comes from.
    pub fn apply_text(
        &mut self,
        text: &str,
        name: &str,
        source: impl Fn(usize) -> Source,
    ) -> Result<(), Failure> {
        let bad = |e: &dyn fmt::Display| {
            Failure::usage(format!("`{name}` is not valid TOML: {}", e.to_string().trim_end()))
        };
        let spans = DeTable::parse(text).map_err(|e| bad(&e))?;
        let table: Table = text.parse().map_err(|e: toml::de::Error| bad(&e))?;
        let mut lines = BTreeMap::new();
        key_lines("", spans.get_ref(), text, &mut lines);
        let mut result = Ok(());
        flatten("", &table, &mut |key, value| {
            if result.is_ok() {
                let line = lines.get(&key).copied().unwrap_or(1);
                result = self.set(&key, value.clone(), source(line));
            }
        });
        result
    }

    /// Takes every `CWM_SECTION_KEY` variable that names a key, e.g. `CWM_OPTIMIZER_LR`.
    pub fn apply_env(&mut self, variables: &BTreeMap<String, String>) -> Result<(), Failure> {
        let keys: Vec<String> = self.values.keys().cloned().collect();
        for key in keys {
            let name = format!("CWM_{}", key.replace('.', "_").to_uppercase());
            if let Some(raw) = variables.get(&name) {
                self.set(&key, parse_value(raw), Source::Env(name))?;
            }
        }
        Ok(())
    }

    /// Takes one `key=value` of `--set`.
    pub fn apply_assignment(&mut self, assignment: &str) -> Result<(), Failure> {
        let (key, raw) = assignment.split_once('=').ok_or_else(|| {
            Failure::usage(format!("`--set {assignment}` has no `=`"))
                .hint("write `--set optimizer.lr=0.001`")
        })?;
        self.set(key.trim(), parse_value(raw.trim()), Source::Set)
    }

    /// Sets one value. Its key must exist and its type must be the default's (an integer serves as a number).
    pub fn set(&mut self, key: &str, value: Value, source: Source) -> Result<(), Failure> {
        let Some(slot) = self.values.get_mut(key) else {
            let failure = Failure::usage(format!("unknown config key `{key}` ({source})"));
            return Err(failure.nearest(key, self.values.keys().map(String::as_str)));
        };
        let value = match (&slot.0, value) {
            (Value::Float(_), Value::Integer(i)) => Value::Float(i as f64),
            (_, value) => value,
        };
        if slot.0.type_str() != value.type_str() {
            return Err(Failure::usage(format!(
                "config key `{key}` wants {} {}, not {} `{value}` ({source})",
                article(slot.0.type_str()),
                slot.0.type_str(),
                article(value.type_str()).to_owned() + " " + value.type_str(),
            )));
        }
        *slot = (value, source);
        Ok(())
    }

    /// Key, value and source of everything, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value, &Source)> {
        self.values.iter().map(|(key, (value, source))| (key.as_str(), value, source))
    }

    /// The merged values as nested tables.
    pub fn table(&self) -> Table {
        let mut root = Table::new();
        for (key, (value, _)) in &self.values {
            insert(&mut root, key, value.clone());
        }
        root
    }
}

fn insert(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_string(), value);
        }
        Some((section, rest)) => {
            let entry = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = entry {
                insert(inner, rest, value);
            }
        }
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// `0.1`, `true`, `[1, 2]` as TOML; anything else is a string.
fn parse_value(raw: &str) -> Value {
    format!("v = {raw}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| Value::String(raw.to_string()))
}

fn flatten<'a>(prefix: &str, table: &'a Table, visit: &mut impl FnMut(String, &'a Value)) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => flatten(&key, inner, visit),
            value => visit(key, value),
        }
    }
}

fn key_lines(prefix: &str, table: &DeTable<'_>, text: &str, lines: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let start = key.span().start.min(text.len());
        let line = text.as_bytes()[..start].iter().filter(|&&b| b == b'\n').count() + 1;
        let name = key.get_ref();
        let key = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        if let toml::de::DeValue::Table(inner) = value.get_ref() {
            key_lines(&key, inner, text, lines);
        }
        lines.insert(key, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layers() -> Layers {
        Layers::new(
            &"[optimizer]\nlr = 0.001\n[train]\nbatch_size = 128\nname = \"\"".parse().unwrap(),
        )
    }

    #[test]
    fn later_layers_win_and_remember_their_source() {
        let mut layers = layers();
        layers
            .apply_text("[optimizer]\nlr = 1", "a.toml", |line| Source::File("a.toml".into(), line))
            .unwrap();
        layers.apply_assignment("train.batch_size=64").unwrap();
        let env = BTreeMap::from([("CWM_TRAIN_NAME".to_string(), "x y".to_string())]);
        layers.apply_env(&env).unwrap();
        let all: Vec<_> = layers.iter().map(|(k, v, s)| format!("{k}={v} {s}")).collect();
        assert_eq!(
            all,
            [
                "optimizer.lr=1.0 a.toml:2",
                "train.batch_size=64 --set",
                "train.name=\"x y\" $CWM_TRAIN_NAME"
            ]
        );
    }

    #[test]
    fn unknown_keys_name_file_line_and_neighbour() {
        let error = layers()
            .apply_text("[optimizer]\n\nlearning = 1\n", "a.toml", |line| {
                Source::File("a.toml".into(), line)
            })
            .unwrap_err();
        assert_eq!(error.message, "unknown config key `optimizer.learning` (a.toml:3)");
        let error = layers().apply_assignment("train.batchsize=1").unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `train.batch_size`?"));
        let error = layers().apply_assignment("train.batch_size=many").unwrap_err();
        assert!(error.message.contains("wants an integer, not a string"), "{}", error.message);
    }
}
