//! `cwm data prepare`: what is kept, under which ids, from which files, by any number of threads.

use std::{
    collections::HashSet,
    fs,
    io::{Read, Write},
    path::Path,
    process::Stdio,
};

use cwm::data::Dataset;
use cwm_core::{
    chess::{MoveToken, random::RandomPlay},
    data::{Games, IdKey, Split},
};
use cwm_tests::cwm::{command, cwm_with_stdin};
use proptest::prelude::*;

use super::{data, fixture, manifest, pgn};

fn load(dir: &Path) -> Games {
    Dataset::open(dir).unwrap().load(Split::All).unwrap()
}

fn site(number: usize) -> String {
    format!("https://example.org/{number:06}")
}

/// Random games as PGN, and the moves that must come out.
fn corpus(games: usize) -> (String, Vec<Vec<MoveToken>>) {
    let mut text = String::new();
    let mut moves = Vec::new();
    for (number, game) in RandomPlay::new(21, 10).take(games).enumerate() {
        text += &pgn(&site(number), &game.moves, game.result);
        moves.push(game.moves);
    }
    (text, moves)
}

#[test]
fn games_are_kept_or_counted_by_reason() {
    let dir = tempfile::tempdir().unwrap();
    let games = fixture("real_process/games.pgn");
    data(dir.path(), ["prepare", games.to_str().unwrap(), "--out", "out"]).expect_done();
    let manifest = manifest(&dir.path().join("out"));
    // The reference parses 39 games; here the tags that two blank lines follow stay with their moves.
    assert_eq!(manifest["counts"]["games"], 21);
    assert_eq!(
        manifest["skipped"],
        serde_json::json!({
            "short": 3, "non_standard_start": 5, "variant": 3, "illegal_move": 2, "ambiguous_move": 1,
            "not_a_move": 1, "null_move": 1, "duplicate": 1
        })
    );
    let kept = load(&dir.path().join("out"));
    let key = IdKey::default();
    assert_eq!(kept.id(0), key.of_site("https://lichess.org/aaaaaa01").unwrap());
    let ids: HashSet<&str> = kept.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), kept.len(), "games without a Site have ids of their own");
}

#[test]
fn moves_come_out_as_they_went_in_whatever_the_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (text, moves) = corpus(700);
    assert!(text.len() > 3 << 20, "several blocks");
    fs::write(dir.path().join("games.pgn"), &text).unwrap();
    let mut outputs = Vec::new();
    for threads in ["1", "2", "7"] {
        let args = [
            "prepare",
            "games.pgn",
            "--threads",
            threads,
            "--shard-games",
            "300",
            "--out",
            threads,
        ];
        let said = data(dir.path(), args).expect_done();
        outputs.push(said.stdout.lines().skip(1).map(String::from).collect::<Vec<_>>());
        let games = load(&dir.path().join(threads));
        assert_eq!(games.len(), moves.len());
        for (number, (id, found)) in games.iter().enumerate() {
            assert_eq!(found, moves[number], "game {number}");
            assert_eq!(id, IdKey::default().of_site(&site(number)).unwrap());
        }
    }
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
    for file in
        ["dataset.json", "shard-00000.parquet", "shard-00001.parquet", "shard-00002.parquet"]
    {
        let read = |threads: &str| fs::read(dir.path().join(threads).join(file)).unwrap();
        assert!(read("1") == read("2") && read("1") == read("7"), "{file}");
    }
}

#[test]
fn compression_and_line_ends_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (text, moves) = corpus(20);
    let plain = text.as_bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(plain).unwrap();
    // Two frames one behind the other, as parallel compressors write.
    let (a, b) = plain.split_at(plain.len() / 3);
    let zstd = [zstd::encode_all(a, 1).unwrap(), zstd::encode_all(b, 1).unwrap()].concat();
    let crlf = format!("\u{feff}{}", text.trim_end().replace('\n', "\r\n"));
    for (name, bytes) in [
        ("plain.pgn", plain.to_vec()),
        ("gzip.txt", gzip.finish().unwrap()),
        ("bzip2.pgn.zst", bzip2.finish().unwrap()),
        ("zstd", zstd),
        ("crlf.pgn", crlf.into_bytes()),
    ] {
        fs::write(dir.path().join(name), bytes).unwrap();
        data(dir.path(), ["prepare", name, "--out", "out", "--force"]).expect_done();
        let found = load(&dir.path().join("out"));
        assert!(found.iter().map(|(_, moves)| moves).eq(moves.iter().map(Vec::as_slice)), "{name}");
    }
    let out = dir.path().join("stdin");
    let args = ["data", "prepare", "-", "--out", out.to_str().unwrap()];
    cwm_with_stdin(args, plain).expect_done();
    assert_eq!(load(&out).len(), 20);
}

#[test]
fn directories_stand_for_the_games_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let games: Vec<_> = RandomPlay::new(2, 10).take(3).collect();
    fs::create_dir_all(dir.path().join("in/sub")).unwrap();
    for (name, game) in ["b.pgn", "a.pgn", "sub/c.pgn"].iter().zip(&games) {
        let text = pgn(&format!("https://example.org/{name}"), &game.moves, game.result);
        fs::write(dir.path().join("in").join(name), text).unwrap();
    }
    fs::write(dir.path().join("in/readme.txt"), "no games").unwrap();
    data(dir.path(), ["prepare", "in", "--out", "out"]).expect_done();
    let found = load(&dir.path().join("out"));
    let order: Vec<_> = [1, 0, 2].iter().map(|&i| games[i].moves.as_slice()).collect();
    assert_eq!(found.iter().map(|(_, moves)| moves).collect::<Vec<_>>(), order);
}

#[test]
fn lines_of_uci_moves_keep_their_ids() {
    let dir = tempfile::tempdir().unwrap();
    let game = RandomPlay::new(9, 10).next().unwrap();
    let moves: Vec<String> = game.moves.iter().map(MoveToken::to_string).collect();
    let moves = moves.join(" ");
    let text = format!(
        "# remark\n\u{20}\nx1\tlichess\t1-0\t-\t2100\t{moves}\r\nx1\totb\t0-1\t-\t-\t{moves}\n\
         x2\totb\twon\t-\t-\t{moves}\nx3\totb\t*\t-\t-\te2e4 e7e5\nx4\totb\t*\t-\t-\te2e5\nx5\totb\t*\t-\t-\t\n{moves}"
    );
    fs::write(dir.path().join("lines"), text).unwrap();
    data(dir.path(), ["prepare", "lines", "--out", "out"]).expect_done();
    let found = load(&dir.path().join("out"));
    assert_eq!(found.len(), 2);
    assert_eq!((found.id(0), found.result(0).as_str()), ("x1", "1-0"));
    assert_eq!(
        found.id(1),
        IdKey::default().of_moves(&game.moves),
        "a bare list has the id of its moves"
    );
    assert_eq!(
        manifest(&dir.path().join("out"))["skipped"],
        serde_json::json!({ "duplicate": 1, "malformed": 1, "short": 2, "illegal_move": 1 })
    );
}

#[test]
fn a_game_too_large_to_hold_is_counted_and_the_next_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let game = RandomPlay::new(9, 10).next().unwrap();
    let whole = |site: &str| pgn(site, &game.moves, game.result);
    let giant = format!(
        "[Event \"giant\"]\n[Site \"https://example.org/giant\"]\n\n1. e4 {{ {} }} e5 *\n\n",
        "x".repeat(3 * cwm_core::data::blocks::MAX_GAME_BYTES)
    );
    let text = whole("https://example.org/1") + &giant + &whole("https://example.org/2");
    fs::write(dir.path().join("games.pgn.zst"), zstd::encode_all(text.as_bytes(), 1).unwrap())
        .unwrap();
    data(dir.path(), ["prepare", "games.pgn.zst", "--out", "out"]).expect_done();
    let manifest = manifest(&dir.path().join("out"));
    assert_eq!(manifest["counts"]["games"], 2);
    assert_eq!(manifest["skipped"], serde_json::json!({ "too_large": 1 }));
}

#[test]
fn deep_variations_and_open_ends_stay_inside_their_game() {
    let dir = tempfile::tempdir().unwrap();
    let game = RandomPlay::new(9, 10).next().unwrap();
    let good = pgn("https://example.org/good", &game.moves, game.result);
    let deep = good.replace("/good", "/deep").replacen(
        "(1. a4",
        &format!("{} (1. a4", "(".repeat(100_000)),
        1,
    );
    let deep = deep.replacen("1... a5) ", &format!("1... a5) {}", ")".repeat(100_000)), 1);
    let open = "[Event \"open\"]\n[Site \"https://example.org/open\"]\n\n1. e4 { never closed\n\n";
    let cut = &good.replace("/good", "/cut")[..good.len() / 2];
    fs::write(dir.path().join("games.pgn"), deep + open + &good + cut).unwrap();
    data(dir.path(), ["prepare", "games.pgn", "--out", "out"]).expect_done();
    let found = load(&dir.path().join("out"));
    assert_eq!(
        (found.id(0), found.id(1)),
        (
            IdKey::default().of_site("https://example.org/deep").unwrap().as_str(),
            IdKey::default().of_site("https://example.org/good").unwrap().as_str(),
        )
    );
    assert_eq!(found.moves(0), game.moves);
    assert_eq!(found.moves(1), game.moves);
    assert_eq!(manifest(&dir.path().join("out"))["skipped"]["malformed"], 1);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_waiting_run_and_leaves_nothing() {
    use std::{thread, time::Duration};

    let dir = tempfile::tempdir().unwrap();
    let mut child = command(["--progress", "none", "data", "prepare", "-", "--out", "out"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Enough for the format to be recognised; then the pipe stays open and silent.
    let (text, _) = corpus(40);
    stdin.write_all(text.as_bytes()).unwrap();
    // The scratch directory appears after the signal handlers are in place.
    while fs::read_dir(dir.path()).unwrap().next().is_none() {
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        thread::sleep(Duration::from_millis(5));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let status = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_text_keeps_only_legal_games(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            Just("{"), Just("}"), Just("("), Just(")"), Just(";"), Just("\n\n"), Just("\0"), Just("Qh8"), Just("--"),
            Just("[Event \"x\"]\n"), Just("1-0"), Just("[FEN \"x\"]\n"), Just("\u{e9}"), Just("%"), Just("\"]"),
        ], 0_usize..3), 1..8)
    ) {
        let (mut text, _) = corpus(4);
        for (at, insert, cut) in edits {
            let mut at = at.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let mut end = (at + cut).min(text.len());
            while !text.is_char_boundary(end) {
                end += 1;
            }
            text.replace_range(at..end, insert);
        }
        let rules = cwm::data::prepare::Rules {
            min_fullmoves: 0,
            en_passant: cwm_core::chess::EnPassant::Always,
            id_key: IdKey::default(),
            quirks: false,
        };
        let keep = cwm_core::data::pgn::Keep { min_plies: 0, id_key: &rules.id_key };
        let (games, skipped) = cwm_core::data::pgn::parse(text.as_bytes(), &keep);
        for parsed in [
            cwm::data::input::Parsed { games, skipped, ..Default::default() },
            cwm::data::input::quirks::parse(text.as_bytes(), &rules),
            cwm::data::input::uci_lines::parse(text.as_bytes(), &rules),
            cwm::data::input::jsonl::parse(text.as_bytes(), &rules),
        ] {
            for (index, (_, moves)) in parsed.games.iter().enumerate() {
                if parsed.replays.iter().any(|(at, _)| *at == index) {
                    continue;
                }
                let mut replayer = cwm_core::chess::replay::Replayer::default();
                for &token in moves {
                    prop_assert!(replayer.push_token(token).is_ok());
                }
            }
        }
    }
}
