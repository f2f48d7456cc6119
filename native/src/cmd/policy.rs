//! `--policy`: policies of random play by name, as `cwm data random` and `cwm evaluate` take them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cwm_core::chess::Policy;

use crate::exit::Failure;

/// What stands behind `--policy` where several may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// One policy.
    One(Policy),
    /// All of them.
    All,
}

fn values() -> impl Iterator<Item = PossibleValue> {
    Policy::ALL.into_iter().map(|policy| PossibleValue::new(policy.name()).help(policy.about()))
}

/// Reads one policy.
pub fn one() -> impl TypedValueParser<Value = Policy> {
    PossibleValuesParser::new(values()).try_map(|name| name.parse())
}

/// Reads one policy or `all`.
pub fn several() -> impl TypedValueParser<Value = Choice> {
    let all = PossibleValue::new("all").help("each of these, as sets of their own");
    PossibleValuesParser::new(values().chain([all])).try_map(|name| match name.as_str() {
        "all" => Ok(Choice::All),
        name => name.parse().map(Choice::One),
    })
}

/// The policies that were chosen, each once, in the order of the command line; the uniform one if none was.
pub fn chosen(choices: &[Choice]) -> Vec<Policy> {
    let mut policies = Vec::new();
    for choice in choices {
        let named = match choice {
            Choice::One(policy) => std::slice::from_ref(policy),
            Choice::All => &Policy::ALL,
        };
        for policy in named {
            if !policies.contains(policy) {
                policies.push(*policy);
            }
        }
    }
    if policies.is_empty() { vec![Policy::Uniform] } else { policies }
}

/// Refuses a minimal length that the policy's games hardly ever reach.
///
/// # Errors
/// A usage [`Failure`].
pub fn check_length(policy: Policy, min_fullmoves: u32) -> anyhow::Result<()> {
    let most = policy.max_min_fullmoves();
    if min_fullmoves <= most {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "games of --policy {policy} hardly ever last {min_fullmoves} full moves"
    ))
    .hint(format!("ask for --min-fullmoves {most} or less"))
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_listed_once_in_the_order_named() {
        assert_eq!(chosen(&[]), [Policy::Uniform]);
        let named = [Choice::One(Policy::Long), Choice::One(Policy::Quiet)];
        assert_eq!(chosen(&[named[0], named[1], named[0]]), [Policy::Long, Policy::Quiet]);
        let all = chosen(&[Choice::One(Policy::Long), Choice::All]);
        assert_eq!((all[0], all[1], all.len()), (Policy::Long, Policy::Uniform, 8));
    }

    #[test]
    fn only_lengths_that_hardly_occur_are_refused() {
        assert!(check_length(Policy::Quiet, 150).is_ok());
        assert!(check_length(Policy::Quiet, 151).is_err());
        assert!(check_length(Policy::Long, 300).is_ok());
    }
}
