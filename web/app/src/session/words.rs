//! Words for models, loads and endings.

use cwm_core::{baseline::Baseline, chess::label::SQUARES, report::grouped};
use cwm_protocol::BackendKind;

use crate::{
    seat::{Progress, Seat, Subject},
    view::{Badge, Loading},
};

pub(super) fn about(seat: &Seat) -> String {
    match (&seat.subject, seat.shown_facts()) {
        (Some(Subject::Baseline(baseline)), _) => baseline_words(*baseline).into(),
        (_, Some(facts)) => {
            format!("{}, {} parameters", facts.family, grouped(facts.parameters))
        }
        _ => String::new(),
    }
}

const fn baseline_words(baseline: Baseline) -> &'static str {
    match baseline {
        Baseline::StartBoard => "always names the start position",
        Baseline::NaiveMover => "moves pieces and counts; knows no castling, en passant or rights",
        Baseline::NaiveMoverRights => {
            "moves pieces, counts and keeps rights; no castling rook, no en passant"
        }
        Baseline::NaiveMoverRightsEp => {
            "knows all but the castling rook and the en passant capture"
        }
        Baseline::Oracle(_) => "the rules of chess",
    }
}

pub(super) fn loading(name: &str, progress: Option<Progress>) -> Loading {
    let fraction = progress.and_then(|p| p.total.map(|t| p.done as f64 / t.max(1) as f64));
    let text = match progress {
        None => "starting the engine".to_string(),
        Some(progress) => {
            let words = crate::grade::phase_words(progress.phase);
            match progress.total {
                Some(total) if progress.phase == cwm_protocol::Phase::Fetching => format!(
                    "{words}, {} of {}",
                    crate::grade::size_of(progress.done),
                    crate::grade::size_of(total)
                ),
                _ => words.to_string(),
            }
        }
    };
    Loading { name: name.into(), text, fraction: fraction.map(|f| f.clamp(0.0, 1.0)) }
}

pub(super) fn badge(seat: &Seat) -> Badge {
    let Some(backend) = &seat.backend else {
        let why = if seat.crashed {
            "the engine stopped: restart it"
        } else {
            "the engine starts when a network is loaded"
        };
        return Badge { text: "no engine yet".into(), why: why.into(), gpu: false };
    };
    let why = backend.why.clone().unwrap_or_default();
    match (backend.kind, &backend.adapter) {
        (BackendKind::Webgpu, adapter) => {
            let adapter = adapter.as_ref().map_or(String::new(), |adapter| {
                format!(": {} {}", adapter.vendor, adapter.architecture)
            });
            Badge { text: format!("WebGPU{}", adapter.trim_end()), why, gpu: true }
        }
        (BackendKind::Cpu, _) => Badge { text: "CPU".into(), why, gpu: false },
    }
}

pub(super) fn board_of(fen: &str) -> String {
    fen.split(' ').next().unwrap_or_default().to_string()
}

pub(super) fn letters(state: Option<&cwm_core::chess::State>) -> String {
    use cwm_core::chess::label::PIECE_SYMBOLS;
    match state {
        None => "?".repeat(SQUARES),
        Some(state) => state.labels()[..SQUARES]
            .iter()
            .map(|&class| PIECE_SYMBOLS[usize::from(class)])
            .collect(),
    }
}

pub(super) const fn ending(termination: cwm_core::chess::random::Termination) -> &'static str {
    use cwm_core::chess::random::Termination;
    match termination {
        Termination::Checkmate => "ends by checkmate",
        Termination::Stalemate => "ends by stalemate",
        Termination::InsufficientMaterial => "ends by insufficient material",
        Termination::SeventyFiveMoves => "ends after 75 moves without progress",
        Termination::FivefoldRepetition => "ends by fivefold repetition",
        Termination::FiftyMoves => "ends by the fifty-move rule",
        Termination::ThreefoldRepetition => "ends by threefold repetition",
        Termination::PlyLimit => "broken off",
    }
}
