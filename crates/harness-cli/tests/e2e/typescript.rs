//! The client for TypeScript, as the server serves it: `tsc --strict` accepts programs with it, which then run in Node
//! against the server. One is the example of the documentation.

use std::fs;
use std::path::Path;

use crate::openai::TOKEN;
use crate::server_page::{project, script, serve, stop};
use crate::support::{Running, Server, root};
use crate::{LONG, installed, other, ran};

const SCRIPT: &str = include_str!("typescript_client.ts");

/// Options of the compiler: strict, without types of Node.
const OPTIONS: [&str; 7] =
    ["--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom,dom.asynciterable"];

#[test]
fn programs_with_the_client_compile_and_run() {
    let folder = installed("typescript");
    let (project, model) = (project(), Server::by(script()));
    let (server, url) = serve(&project, &model.url, "127.0.0.1:0");
    for file in ["client.js", "client.d.ts"] {
        fs::write(folder.join(file), download(&format!("{url}/{file}"))).unwrap();
    }
    fs::write(folder.join("package.json"), "{ \"private\": true, \"type\": \"module\" }\n").unwrap();
    let fill = |text: &str| text.replace("http://localhost:8787", &url).replace("TOKEN", TOKEN);
    fs::write(folder.join("example.ts"), fill(&example())).unwrap();
    fs::write(folder.join("check.ts"), fill(SCRIPT).replace("MODEL", &model.url)).unwrap();
    let mut compiler = other(folder.join("node_modules/.bin/tsc"), &folder);
    compiler.args(OPTIONS).args(["example.ts", "check.ts"]);
    ran(compiler);
    assert!(node(&folder, "example.js").contains("answer_finalized"));
    let mut check = other("node", &folder);
    check.arg("check.js");
    let (check, line) = Running::start(check).line("the program wants the server to restart");
    assert_eq!(line.trim(), "restart", "{}", check.end_in(LONG).stderr);
    stop(server);
    let (server, _) = serve(&project, &model.url, url.strip_prefix("http://").unwrap());
    let output = check.end_in(LONG);
    assert_eq!((output.code, output.stdout.trim()), (Some(0), "ok"), "{}", output.stderr);
    stop(server);
}

fn node(folder: &Path, program: &str) -> String {
    let mut node = other("node", folder);
    node.arg(program);
    ran(node)
}

fn download(url: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    runtime.block_on(async {
        client.get(url).send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
    })
}

/// The program of the page.
fn example() -> String {
    let page = fs::read_to_string(root().join("docs/cookbook/serve-typescript.md")).unwrap();
    let (_, rest) = page.split_once("```ts\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}
