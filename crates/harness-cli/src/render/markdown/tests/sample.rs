//! One text with everything, as it looks.

use super::*;

const SAMPLE: &str = "# Findings\n\nThe *parser* is **fast**, ~~slow~~ and reads `&str`; see [the guide](https://a.example/guide) or <https://b.example>.\n\nSecond line  \nafter a break, with 世界 and 👩‍👩‍👧 and e\u{301}.\n\n## Steps\n\n1. Read the file\n2. Fix it:\n   - `a.rs`\n   - `b.rs` which has a rather long explanation that does not fit\n     - [x] done\n     - [ ] not done\n3. Run it\n\n> A quote of\n> two lines\n>\n> > and one inside\n\n```rust\nfn main() {\n    println!(\"a line of code that larger than forty columns\");\n}\n```\n\n| name | size | what it is for |\n|:-----|-----:|:--------------:|\n| `core` | 12 | messages, ports, gates, events and the machines |\n| 世界 | 3 | wide |\n\n---\n\nThe end.";

fn shown(width: usize, styling: Styling) -> String {
    let lines: Vec<String> =
        lines(SAMPLE, width, styling).iter().map(|line| readable(&line.to_ansi())).collect();
    lines.join("\n")
}

/// Escapes and combining marks as characters that an editor shows.
fn readable(ansi: &str) -> String {
    ansi.replace('\u{1b}', "⎋").replace('\u{301}', "´")
}

#[test]
fn plain_at_40() {
    insta::assert_snapshot!(shown(40, Styling::Plain), @r#"
    # Findings

    The *parser* is **fast**, ~~slow~~ and
    reads `&str`; see the guide
    (https://a.example/guide) or
    https://b.example.

    Second line
    after a break, with 世界 and 👩‍👩‍👧 and e´.

    ## Steps

    1. Read the file
    2. Fix it:
       - `a.rs`
       - `b.rs` which has a rather long
         explanation that does not fit
         - [x] done
         - [ ] not done
    3. Run it

    > A quote of two lines
    >
    > > and one inside

    ```rust
    fn main() {
        println!("a line of code that larg
    ↪ er than forty columns");
    }
    ```

    name   │ size │      what it is for
    ───────┼──────┼─────────────────────────
    `core` │   12 │ messages, ports, gates,
           │      │ events and the machines
    ───────┼──────┼─────────────────────────
    世界   │    3 │           wide

    ────────────────────────────────────────

    The end.
    "#);
}

#[test]
fn plain_at_80() {
    insta::assert_snapshot!(shown(80, Styling::Plain), @r#"
    # Findings

    The *parser* is **fast**, ~~slow~~ and reads `&str`; see the guide
    (https://a.example/guide) or https://b.example.

    Second line
    after a break, with 世界 and 👩‍👩‍👧 and e´.

    ## Steps

    1. Read the file
    2. Fix it:
       - `a.rs`
       - `b.rs` which has a rather long explanation that does not fit
         - [x] done
         - [ ] not done
    3. Run it

    > A quote of two lines
    >
    > > and one inside

    ```rust
    fn main() {
        println!("a line of code that larger than forty columns");
    }
    ```

    name   │ size │                 what it is for
    ───────┼──────┼────────────────────────────────────────────────
    `core` │   12 │ messages, ports, gates, events and the machines
    世界   │    3 │                      wide

    ────────────────────────────────────────────────────────────────────────────────

    The end.
    "#);
}

#[test]
fn colour_at_40() {
    insta::assert_snapshot!(shown(40, Styling::Colour), @r#"
    ⎋[1m⎋[4mFindings⎋[0m

    The ⎋[3mparser⎋[0m is ⎋[1mfast⎋[0m, ⎋[9mslow⎋[0m and reads ⎋[36m&str⎋[0m;
    see ⎋]8;;https://a.example/guide⎋\⎋[4mthe guide⎋[0m⎋]8;;⎋\⎋[2m (https://a.example/guide)⎋[0m
    or ⎋]8;;https://b.example⎋\⎋[4mhttps://b.example⎋[0m⎋]8;;⎋\.

    Second line
    after a break, with 世界 and 👩‍👩‍👧 and e´.

    ⎋[1mSteps⎋[0m

    ⎋[2m1. ⎋[0mRead the file
    ⎋[2m2. ⎋[0mFix it:
       ⎋[2m◦ ⎋[0m⎋[36ma.rs⎋[0m
       ⎋[2m◦ ⎋[0m⎋[36mb.rs⎋[0m which has a rather long
         explanation that does not fit
         ⎋[2m▪ ⎋[0m[✓] done
         ⎋[2m▪ ⎋[0m[ ] not done
    ⎋[2m3. ⎋[0mRun it

    ⎋[2m│ ⎋[0mA quote of two lines
    ⎋[2m│⎋[0m
    ⎋[2m│ │ ⎋[0mand one inside

      ⎋[2mrust⎋[0m
      ⎋[35mfn⎋[0m ⎋[1mmain⎋[0m() {
          println!(⎋[32m"a line of code that larg⎋[0m
    ⎋[2m↪ ⎋[0m⎋[32mer than forty columns"⎋[0m);
      }

    ⎋[1mname⎋[0m⎋[2m │ ⎋[0m⎋[1msize⎋[0m⎋[2m │ ⎋[0m      ⎋[1mwhat it is for⎋[0m
    ⎋[2m─────┼──────┼───────────────────────────⎋[0m
    ⎋[36mcore⎋[0m⎋[2m │ ⎋[0m  12⎋[2m │ ⎋[0m messages, ports, gates,
        ⎋[2m │ ⎋[0m    ⎋[2m │ ⎋[0m events and the machines
    ⎋[2m─────┼──────┼───────────────────────────⎋[0m
    世界⎋[2m │ ⎋[0m   3⎋[2m │ ⎋[0m           wide

    ⎋[2m────────────────────────────────────────⎋[0m

    The end.
    "#);
}

#[test]
fn colour_at_80() {
    insta::assert_snapshot!(shown(80, Styling::Colour), @r#"
    ⎋[1m⎋[4mFindings⎋[0m

    The ⎋[3mparser⎋[0m is ⎋[1mfast⎋[0m, ⎋[9mslow⎋[0m and reads ⎋[36m&str⎋[0m; see ⎋]8;;https://a.example/guide⎋\⎋[4mthe guide⎋[0m⎋]8;;⎋\⎋[2m (https://a.example/guide)⎋[0m
    or ⎋]8;;https://b.example⎋\⎋[4mhttps://b.example⎋[0m⎋]8;;⎋\.

    Second line
    after a break, with 世界 and 👩‍👩‍👧 and e´.

    ⎋[1mSteps⎋[0m

    ⎋[2m1. ⎋[0mRead the file
    ⎋[2m2. ⎋[0mFix it:
       ⎋[2m◦ ⎋[0m⎋[36ma.rs⎋[0m
       ⎋[2m◦ ⎋[0m⎋[36mb.rs⎋[0m which has a rather long explanation that does not fit
         ⎋[2m▪ ⎋[0m[✓] done
         ⎋[2m▪ ⎋[0m[ ] not done
    ⎋[2m3. ⎋[0mRun it

    ⎋[2m│ ⎋[0mA quote of two lines
    ⎋[2m│⎋[0m
    ⎋[2m│ │ ⎋[0mand one inside

      ⎋[2mrust⎋[0m
      ⎋[35mfn⎋[0m ⎋[1mmain⎋[0m() {
          println!(⎋[32m"a line of code that larger than forty columns"⎋[0m);
      }

    ⎋[1mname⎋[0m⎋[2m │ ⎋[0m⎋[1msize⎋[0m⎋[2m │ ⎋[0m                ⎋[1mwhat it is for⎋[0m
    ⎋[2m─────┼──────┼────────────────────────────────────────────────⎋[0m
    ⎋[36mcore⎋[0m⎋[2m │ ⎋[0m  12⎋[2m │ ⎋[0mmessages, ports, gates, events and the machines
    世界⎋[2m │ ⎋[0m   3⎋[2m │ ⎋[0m                     wide

    ⎋[2m────────────────────────────────────────────────────────────────────────────────⎋[0m

    The end.
    "#);
}
