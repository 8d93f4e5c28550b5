//! Secrets that are masked by their look.

use harness_core::display::{mask_line, mask_secrets};

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(mask_secrets(text), expected);
}

#[test]
fn credentials_of_urls_are_masked() {
    check("`htp:/user:PASSWORD@h` is no URL", "`htp:/***@h` is no URL");
    check("https://user:pass@host:80/v1?q=a@b", "https://***@host:80/v1?q=a@b");
    check("https://token@host", "https://***@host");
    check("http://u:pa/ss@host", "http://***@host");
    check("user:pass@host", "***@host");
    for plain in
        ["http://127.0.0.1:80/v1", "https://h/@scope/a", "a@b.example", "mailto:a@b.example", "git@h:a/b"]
    {
        check(plain, plain);
    }
}

#[test]
fn api_keys_are_masked() {
    check("key sk-or-v1-0123456789abcdef.", "key sk-***");
    check("(ghp_abcdefghijklmnop)", "(ghp_***)");
    check("AKIAABCDEFGHIJKLMNOP", "AKIA***");
    check("Authorization: Bearer abcdefgh12", "Authorization: Bearer ***");
    check("task-management-of-everything", "task-management-of-everything");
}

#[test]
fn values_of_secret_names_are_masked() {
    check("OPENROUTER_API_KEY=abcdefg", "OPENROUTER_API_KEY=***");
    check("password: hunter2hunter", "password: ***");
    check("{\"token\":\"a1b2c3d4e5f6g7h8i9\"}", "{\"token\":\"***\"}");
    check("token: a1b2c3d4e5f6g7h8i9", "token: ***");
    check("key `entry_agent` of runtime: desk", "key `entry_agent` of runtime: desk");
    check("tokens: 200 + 10", "tokens: 200 + 10");
    check("invalid type: string \"0123456789abcdef0\", expected", "invalid type: string \"***\", expected");
}

#[test]
fn masked_line_keeps_its_columns() {
    assert_eq!(mask_line("  0123456789abcdef0123  "), "  ********************  ");
    assert_eq!(mask_line("a: https://u:p@h"), "a: https://***@h");
    assert_eq!(mask_line("instructions: be kind"), "instructions: be kind");
}
