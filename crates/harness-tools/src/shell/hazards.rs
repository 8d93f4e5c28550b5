//! Options of well-known programs with effects beyond their evident purpose.
//!
//! An allow rule such as `git log` means "show the history", and `git log --output=FILE` writes any file. The
//! table lists such options: they write arbitrary files or start programs. They are rejected even if an allow
//! rule matches, unless a rule names them.

use super::scripts;

/// Known options of a program or of one of its subcommands.
pub(super) struct Known {
    /// The names it goes by, without trailing digits and dots (`python3.12` is `python`).
    names: &'static [&'static str],
    /// The subcommands that this is about; empty for all.
    under: &'static [&'static str],
    /// Refused one-letter options.
    short: &'static str,
    /// One-letter options with a value: the rest of the word is not an option.
    values: &'static str,
    /// One-letter options that are refused before the subcommand.
    before: &'static str,
    /// Refused long options, with their dashes.
    long: &'static [&'static str],
    /// Refused words; those that end in `=` or `+` are beginnings of words.
    words: &'static [&'static str],
    /// Refused subcommands.
    subcommands: &'static [&'static str],
    operands: Operands,
}

/// Effect of words that are not options.
enum Operands {
    Any,
    /// At most so many; the next one is a file to write.
    AtMost(usize),
    /// Each has to be named by a rule: it is a file to write, or a program's text.
    Named,
    /// They are a separate command, which a rule must name.
    Command,
    /// They may hold a program's text, which is looked into.
    Text(fn(&[String]) -> bool),
}

const ANY: Known = Known {
    names: &[],
    under: &[],
    short: "",
    values: "",
    before: "",
    long: &[],
    words: &[],
    subcommands: &[],
    operands: Operands::Any,
};

const TABLE: &[Known] = &[
    Known {
        names: &["git"],
        before: "cC",
        long: &[
            "--output",
            "--output-directory",
            "--ext-diff",
            "--exec",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--open-files-in-pager",
            "--config-env",
            "--config",
            "--git-dir",
            "--work-tree",
            "--separate-git-dir",
            "--template",
            "--extcmd",
            "--tool",
            "--in-place",
        ],
        subcommands: &[
            "bisect",
            "bugreport",
            "bundle",
            "checkout-index",
            "clone",
            "config",
            "credential",
            "credential-cache",
            "credential-store",
            "cvsserver",
            "daemon",
            "diagnose",
            "difftool",
            "fast-export",
            "filter-branch",
            "for-each-repo",
            "gui",
            "hook",
            "http-backend",
            "init",
            "instaweb",
            "maintenance",
            "mergetool",
            "remote-ext",
            "remote-fd",
            "send-email",
            "shell",
            "submodule",
            "svn",
            "upload-archive",
            "web--browse",
            "worktree",
        ],
        ..ANY
    },
    Known { names: &["git"], under: &["grep"], short: "O", values: "ABCefm", ..ANY },
    Known { names: &["git"], under: &["clone"], short: "cu", values: "bjo", ..ANY },
    Known {
        names: &["git"],
        under: &["rebase"],
        short: "xisX",
        values: "C",
        long: &["--interactive"],
        ..ANY
    },
    Known { names: &["git"], under: &["archive", "format-patch"], short: "o", values: "v", ..ANY },
    Known {
        names: &["find", "gfind"],
        words: &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"],
        ..ANY
    },
    Known {
        names: &["fd", "fdfind"],
        short: "xX",
        values: "dtecES",
        long: &["--exec", "--exec-batch"],
        ..ANY
    },
    Known { names: &["rg"], long: &["--pre", "--hostname-bin"], ..ANY },
    Known { names: &["ag", "ack"], long: &["--pager"], ..ANY },
    Known { names: &["bat", "batcat"], long: &["--pager", "--config-file"], ..ANY },
    Known {
        names: &["sort", "gsort"],
        short: "oT",
        values: "ktS",
        long: &["--output", "--compress-program", "--temporary-directory"],
        ..ANY
    },
    Known { names: &["uniq"], values: "fsw", operands: Operands::AtMost(1), ..ANY },
    Known { names: &["xxd"], values: "cglnos", operands: Operands::AtMost(1), ..ANY },
    Known { names: &["tree", "iconv"], short: "o", values: "LPIfT", long: &["--output"], ..ANY },
    Known { names: &["sdiff"], short: "o", long: &["--output", "--diff-program"], ..ANY },
    Known { names: &["xmllint"], short: "o", long: &["--output"], words: &["-output", "-o"], ..ANY },
    Known { names: &["file"], short: "C", values: "eFfPm", long: &["--compile"], ..ANY },
    Known { names: &["date", "gdate"], short: "s", values: "dfr", long: &["--set"], ..ANY },
    Known { names: &["split", "gsplit"], long: &["--filter"], ..ANY },
    Known { names: &["yq"], short: "i", long: &["--inplace", "--in-place"], ..ANY },
    Known {
        names: &["tar", "gtar", "bsdtar"],
        short: "IFP",
        values: "fCTXbgKNV",
        long: &[
            "--to-command",
            "--use-compress-program",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
            "--absolute-names",
        ],
        operands: Operands::Text(scripts::tar),
        ..ANY
    },
    Known { names: &["zip"], short: "T", long: &["--test", "--unzip-command"], words: &["-TT"], ..ANY },
    Known {
        names: &["sed", "gsed"],
        short: "ifIl",
        values: "e",
        long: &["--in-place", "--file", "--line-length"],
        operands: Operands::Text(scripts::sed),
        ..ANY
    },
    Known {
        names: &["awk", "gawk", "mawk", "nawk"],
        short: "fEildopDeW",
        values: "Fv",
        long: &[
            "--file",
            "--exec",
            "--include",
            "--load",
            "--dump-variables",
            "--debug",
            "--pretty-print",
            "--profile",
            "--source",
        ],
        operands: Operands::Text(scripts::awk),
        ..ANY
    },
    Known { names: &["tee"], operands: Operands::Named, ..ANY },
    Known { names: &["dd"], words: &["of="], ..ANY },
    Known {
        names: &["curl"],
        short: "oOKDcJ",
        values: "AbdeFHmPQrTuUwxXyYzEC",
        long: &[
            "--output",
            "--output-dir",
            "--remote-name",
            "--remote-name-all",
            "--remote-header-name",
            "--config",
            "--dump-header",
            "--cookie-jar",
            "--trace",
            "--trace-ascii",
            "--stderr",
            "--libcurl",
            "--etag-save",
            "--hsts",
            "--alt-svc",
            "--engine",
        ],
        ..ANY
    },
    Known {
        names: &["wget"],
        short: "OoaPe",
        values: "ABDIQRTUitwl",
        long: &[
            "--output-document",
            "--output-file",
            "--append-output",
            "--directory-prefix",
            "--config",
            "--execute",
            "--save-cookies",
            "--warc-file",
            "--rejected-log",
            "--use-askpass",
            "--hsts-file",
        ],
        ..ANY
    },
    Known { names: &["ssh"], short: "oFESDLRwJI", values: "bceilmPpQW", operands: Operands::Command, ..ANY },
    Known { names: &["scp", "sftp"], short: "oFSDJb", values: "ciPlX", ..ANY },
    Known {
        names: &["rsync"],
        short: "eMT",
        values: "fB",
        long: &[
            "--rsh",
            "--rsync-path",
            "--remote-option",
            "--log-file",
            "--daemon",
            "--config",
            "--write-batch",
            "--only-write-batch",
            "--backup-dir",
            "--partial-dir",
            "--temp-dir",
        ],
        ..ANY
    },
    Known {
        names: &["less", "more"],
        short: "oOk",
        values: "bhjpPtTxyz",
        long: &["--log-file", "--LOG-FILE", "--lesskey-file", "--lesskey-src", "--lesskey-content"],
        words: &["+"],
        ..ANY
    },
    Known {
        names: &["man"],
        short: "PHCX",
        long: &["--pager", "--html", "--config-file", "--gxditview"],
        ..ANY
    },
    Known {
        names: &["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"],
        short: "csil",
        long: &["--init-file", "--rcfile", "--command", "--init-command"],
        ..ANY
    },
    Known { names: &["python", "pypy", "ipython"], short: "cmi", values: "WXQ", ..ANY },
    Known { names: &["perl"], short: "eEiMmdxs", values: "IFl0", ..ANY },
    Known { names: &["ruby"], short: "eirx", values: "IEFK", ..ANY },
    Known {
        names: &["node", "nodejs", "bun", "deno"],
        short: "epri",
        long: &[
            "--eval",
            "--print",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "--preload",
        ],
        subcommands: &["eval", "repl", "x"],
        ..ANY
    },
    Known { names: &["php"], short: "rBRFEdcz", long: &["--run", "--define", "--process-code"], ..ANY },
    Known { names: &["lua", "luajit"], short: "eli", ..ANY },
    Known { names: &["make", "gmake"], short: "fC", values: "jloW", long: MAKE, words: &["="], ..ANY },
    Known { names: &["cargo"], short: "ZC", values: "pjF", long: &["--config"], words: &["+"], ..ANY },
    Known {
        names: &["go"],
        words: &[
            "-exec",
            "--exec",
            "-toolexec",
            "--toolexec",
            "-overlay",
            "--overlay",
            "-o",
            "-C",
            "-vettool",
        ],
        subcommands: &["run", "generate", "env", "tool"],
        ..ANY
    },
    Known {
        names: &["cc", "gcc", "g++", "c++", "clang", "clang++"],
        short: "oB",
        values: "IDULlxW",
        words: &["-wrapper", "-fplugin=", "@"],
        ..ANY
    },
    Known {
        names: &[
            "env", "xargs", "nice", "nohup", "timeout", "gtimeout", "setsid", "stdbuf", "ionice", "chrt",
            "taskset",
        ],
        operands: Operands::Command,
        ..ANY
    },
    Known {
        names: &[
            "sudo", "doas", "su", "runuser", "chroot", "unshare", "nsenter", "setpriv", "setarch", "watch",
        ],
        operands: Operands::Command,
        ..ANY
    },
    Known {
        names: &[
            "strace", "ltrace", "gdb", "script", "flock", "parallel", "entr", "time", "npx", "busybox",
            "toybox",
        ],
        operands: Operands::Command,
        ..ANY
    },
    Known {
        names: &[
            "vi",
            "vim",
            "nvim",
            "view",
            "ex",
            "ed",
            "emacs",
            "sqlite",
            "psql",
            "mysql",
            "osascript",
            "expect",
        ],
        operands: Operands::Named,
        ..ANY
    },
];

const MAKE: &[&str] = &["--file", "--makefile", "--directory", "--eval", "--include-dir"];

/// Options that rules permit.
#[derive(Clone, Copy)]
pub(super) struct Named<'r> {
    /// The rules that begin the command.
    pub(super) rules: &'r [&'r Vec<String>],
    /// Permitted options: a program with options; without options all of them.
    pub(super) options: &'r [Vec<String>],
}

impl Named<'_> {
    /// Whether all that a program can do is permitted.
    fn whole(self, program: &str) -> bool {
        self.options.iter().any(|words| words.len() == 1 && words.iter().all(|word| name_of(word) == program))
    }

    fn has(self, program: &str, token: &str) -> bool {
        let names =
            |words: &Vec<String>| words.iter().skip(1).any(|word| word == token || long_name(word) == token);
        let of_program = |words: &&Vec<String>| words.first().is_some_and(|word| name_of(word) == program);
        self.rules.iter().any(|words| names(words)) || self.options.iter().filter(of_program).any(names)
    }

    /// Whether a rule names the program that a command such as `env` starts.
    fn command(self) -> bool {
        let word = |word: &String| word.starts_with(|c: char| c.is_alphabetic() || c == '/' || c == '.');
        self.rules.iter().any(|words| words.iter().skip(1).any(|w| word(w) && !w.contains('=')))
    }
}

/// The first word of a command that can write files or start programs and is not named by a rule.
pub(super) fn hazard(words: &[String], named: Named<'_>) -> Option<(String, String)> {
    let (program, arguments) = words.split_first()?;
    let program = name_of(program);
    if named.whole(program) {
        return None;
    }
    for known in TABLE.iter().filter(|known| known.names.contains(&program)) {
        let concerns = known.under.is_empty() || arguments.iter().any(|word| known.under.contains(&&**word));
        if let Some(found) = concerns.then(|| known.hazard(program, arguments, named)).flatten() {
            return Some((program.to_owned(), found));
        }
        if matches!(known.operands, Operands::Command) {
            // The command that it starts may begin at any of the words.
            let inner = (1..words.len()).find_map(|at| hazard(words.get(at..)?, named));
            if inner.is_some() {
                return inner;
            }
        }
    }
    None
}

impl Known {
    fn hazard(&self, program: &str, arguments: &[String], named: Named<'_>) -> Option<String> {
        let mut subcommand = None;
        for word in arguments {
            if let Some(found) =
                self.option(word, subcommand.is_none()).filter(|found| !named.has(program, found))
            {
                return Some(found);
            }
            if subcommand.is_none() && !word.starts_with('-') {
                subcommand = Some(word);
            }
        }
        let refused =
            subcommand.filter(|word| self.subcommands.contains(&word.as_str()) && !named.has(program, word));
        refused.cloned().or_else(|| self.operand(program, arguments, named))
    }

    /// The refused option that a word is, or has in it.
    fn option(&self, word: &str, first: bool) -> Option<String> {
        let begins = |known: &&&str| known.ends_with(['=', '+', '@']) && word.starts_with(**known);
        if let Some(known) = self.words.iter().find(|known| **known == word || begins(known)) {
            return Some((*known).to_owned());
        }
        // The variable of a `make` may be its shell.
        if self.words.contains(&"=") && word.contains('=') && !word.starts_with('-') {
            return Some("=".to_owned());
        }
        if word.starts_with("--") {
            let name = long_name(word);
            // Long options may be cut short, and `--` itself is none.
            let known = self.long.iter().find(|known| name.len() > 2 && known.starts_with(name));
            return known.map(|known| (*known).to_owned());
        }
        let letters = word.strip_prefix('-')?;
        let before = if first { self.before } else { "" };
        let mut options = letters.chars().map_while({
            let mut value = false;
            move |letter| {
                let read = (!value).then_some(letter);
                value = self.values.contains(letter);
                read
            }
        });
        options
            .find(|letter| self.short.contains(*letter) || before.contains(*letter))
            .map(|c| format!("-{c}"))
    }

    fn operand(&self, program: &str, arguments: &[String], named: Named<'_>) -> Option<String> {
        let mut operands = arguments.iter().filter(|word| !word.starts_with('-'));
        match self.operands {
            Operands::Any => None,
            Operands::AtMost(most) => operands.nth(most).filter(|word| !named.has(program, word)).cloned(),
            Operands::Named => operands.find(|word| !named.has(program, word)).cloned(),
            Operands::Command if named.command() => None,
            Operands::Command => operands.next().cloned(),
            Operands::Text(harmless) if harmless(arguments) => None,
            Operands::Text(_) => arguments.iter().find(|word| !named.has(program, word)).cloned(),
        }
    }
}

/// Whether a rule's option is among the words, also cut short or joined with others.
pub(super) fn has_option(words: &[String], option: &str) -> bool {
    words.iter().any(|word| {
        let letter = option.strip_prefix('-').filter(|letters| letters.chars().count() == 1);
        match letter {
            Some(letter) => word.starts_with('-') && !word.starts_with("--") && word.contains(letter),
            None if option.starts_with("--") && word.starts_with("--") => {
                let (option, word) = (long_name(option), long_name(word));
                word.len() > 2 && option.starts_with(word)
            }
            None => word == option,
        }
    })
}

/// A long option without its value.
fn long_name(word: &str) -> &str {
    word.split_once('=').filter(|_| word.starts_with("--")).map_or(word, |(name, _)| name)
}

/// Name of a program without its directory and version.
pub(super) fn name_of(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() { name } else { bare.trim_end_matches('-') }
}
