//! The reference's command-line arguments to a config: one table for each of its architectures.
//!
//! A checkpoint of the reference holds the arguments of every architecture; those of others than its own say nothing.

use serde_json::{Map, Value as Json, json};

use super::{
    TorchError,
    fields::{Field, Fields},
};
use crate::{
    checkpoint::error::{CheckpointError, quoted},
    config::ModelConfig,
};

/// How messages name the arguments.
const PLACE: &str = "the checkpoint's `args`";
/// The reference's word for a family, and what reads its arguments.
type Family = (&'static str, fn(&Fields<'_>) -> Result<Map<String, Json>, TorchError>);
/// The architectures that are read.
const FAMILIES: &[Family] = &[
    ("transformer", transformer),
    ("slice", slice),
    ("gated_deltanet", gated_deltanet),
    ("mamba", mamba),
];
/// Beginnings of the names of arguments that belong to one architecture each.
const PREFIXES: [(&str, &str); 4] = [
    ("slice_", "slice"),
    ("gated_deltanet_", "gated_deltanet"),
    ("mamba_", "mamba"),
    ("mamba3_", "mamba"),
];
/// Beginnings of arguments that say where files lay and who was told, and nothing of the network.
const PRIVATE: [&str; 5] = ["ckpt_path", "data_path", "experiment_config", "resume", "wandb"];

/// The config of the network that these arguments and this vocabulary make.
pub(super) fn config(args: &Fields<'_>, spec: &Fields<'_>) -> Result<ModelConfig, CheckpointError> {
    let arch = args.text("arch")?;
    let Some((_, read)) = FAMILIES.iter().find(|(name, _)| *name == arch) else {
        let known = FAMILIES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(CheckpointError::UnknownFamily { place: PLACE, family: quoted(arch), known });
    };
    let mut object = read(args)?;
    for key in ["move_vocab", "start_move_id", "pad_move_id"] {
        object.insert(key.into(), json!(spec.count(key)?));
    }
    ModelConfig::from_json(&Json::Object(object).to_string()).map_err(|error| {
        CheckpointError::Config { place: PLACE, reason: quoted(&error.to_string()) }
    })
}

/// The arguments that bear on the network and its training, as text by dotted key.
pub(super) fn settings(args: &Fields<'_>) -> impl Iterator<Item = (String, String)> {
    let arch = args.text("arch").unwrap_or_default();
    let ours = move |key: &str| {
        let of = PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix));
        of.is_none_or(|(_, family)| *family == arch) && !PRIVATE.iter().any(|p| key.starts_with(p))
    };
    let told = args.all.iter().filter(move |(key, value)| ours(key) && **value != Field::None);
    told.map(|(key, value)| (format!("args.{}", quoted(key)), value.to_string()))
}

/// A config's beginning: its family, and the arguments that have the same name in it.
fn with(family: &str, args: &Fields<'_>, same: &[&str]) -> Result<Map<String, Json>, TorchError> {
    let mut object = Map::new();
    object.insert("family".into(), json!(family));
    for key in same {
        object.insert((*key).into(), number(args, key)?);
    }
    Ok(object)
}

/// Puts arguments of other names, as `(ours, the reference's)`, into a config.
fn rename(
    object: &mut Map<String, Json>,
    args: &Fields<'_>,
    pairs: &[(&str, &str)],
) -> Result<(), TorchError> {
    for (ours, theirs) in pairs {
        object.insert((*ours).into(), number(args, theirs)?);
    }
    Ok(())
}

/// Refuses arguments that would build another network than the benchmark's. One that is missing is as it should be:
/// the checkpoint is older than the argument.
fn demand(args: &Fields<'_>, demands: &[(&str, Field<'_>)]) -> Result<(), TorchError> {
    for (key, supported) in demands {
        match args.get(key) {
            Some(found) if found != *supported => {
                return Err(TorchError::Argument {
                    key: (*key).into(),
                    found: found.to_string(),
                    supported: supported.to_string(),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// An argument that is a number.
fn number(args: &Fields<'_>, key: &str) -> Result<Json, TorchError> {
    match args.required(key)? {
        Field::Int(value) => Ok(json!(value)),
        Field::Float(value) => Ok(json!(value)),
        found => Err(args.wrong(key, found, "a number")),
    }
}

fn transformer(args: &Fields<'_>) -> Result<Map<String, Json>, TorchError> {
    with("transformer", args, &["d_model", "n_layers", "n_heads", "ff_mult", "dropout"])
}

fn slice(args: &Fields<'_>) -> Result<Map<String, Json>, TorchError> {
    demand(
        args,
        &[
            ("slice_diagonal_dense", Field::Bool(false)),
            ("slice_input_dependent_init", Field::Bool(false)),
            ("slice_path_mode", Field::Str("values")),
            ("slice_norm_type", Field::Str("rmsnorm")),
            ("slice_ff_style", Field::Str("mlp")),
            ("slice_ff_activation", Field::Str("gelu")),
            ("slice_dropout_position", Field::Str("residual")),
            ("slice_norm_eps", Field::Float(1e-6)),
            ("slice_final_norm", Field::Bool(false)),
        ],
    )?;
    let mut object = with("slice", args, &["d_model", "n_layers", "ff_mult", "dropout"])?;
    let pairs = [
        ("block_size", "slice_block_size"),
        ("scale", "slice_scale"),
        ("init_std", "slice_init_std"),
    ];
    rename(&mut object, args, &pairs)?;
    Ok(object)
}

fn gated_deltanet(args: &Fields<'_>) -> Result<Map<String, Json>, TorchError> {
    demand(
        args,
        &[
            ("gated_deltanet_use_gate", Field::Bool(true)),
            ("gated_deltanet_use_short_conv", Field::Bool(true)),
        ],
    )?;
    let mut object = with("gated_deltanet", args, &["d_model", "n_layers", "n_heads", "ff_mult"])?;
    let pairs = [
        ("head_dim", "gated_deltanet_head_dim"),
        ("expand_v", "gated_deltanet_expand_v"),
        ("conv_size", "gated_deltanet_conv_size"),
        ("norm_eps", "gated_deltanet_norm_eps"),
    ];
    rename(&mut object, args, &pairs)?;
    let negative = args.flag("gated_deltanet_allow_neg_eigval")?;
    object.insert("allow_neg_eigval".into(), json!(negative));
    Ok(object)
}

fn mamba(args: &Fields<'_>) -> Result<Map<String, Json>, TorchError> {
    demand(
        args,
        &[
            ("mamba_ngroups", Field::Int(1)),
            ("mamba_d_intermediate", Field::None),
            ("mamba_rms_norm", Field::Bool(true)),
            ("mamba_norm_eps", Field::Float(1e-5)),
            ("mamba3_rope_fraction", Field::Float(0.5)),
            ("mamba3_is_outproj_norm", Field::Bool(false)),
        ],
    )?;
    let family = match args.text("mamba_variant")? {
        "mamba-2" => "mamba2",
        "mamba-3" => "mamba3",
        other => {
            return Err(TorchError::Argument {
                key: "mamba_variant".into(),
                found: quoted(other),
                supported: "mamba-2 or mamba-3".into(),
            });
        }
    };
    let mut object = with(family, args, &["d_model", "n_layers", "ff_mult", "dropout"])?;
    rename(&mut object, args, &[("expand", "mamba_expand"), ("headdim", "mamba_headdim")])?;
    // Where the command line names no state width, the reference's default is ours.
    if args.required("mamba_d_state")? != Field::None {
        rename(&mut object, args, &[("d_state", "mamba_d_state")])?;
    }
    if family == "mamba2" {
        rename(&mut object, args, &[("d_conv", "mamba_d_conv")])?;
    } else if args.flag("mamba3_is_mimo")? {
        rename(&mut object, args, &[("mimo_rank", "mamba3_mimo_rank")])?;
    }
    Ok(object)
}
