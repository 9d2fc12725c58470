//! Reads Rust source just well enough to know what it names: code without comments, literals and test modules.

use std::collections::BTreeSet;

/// One source file, taken apart.
pub(crate) struct Source {
    /// The code; comments, literals and everything under `#[cfg(test)]` are blanks, line breaks stay.
    pub(crate) code: String,
    /// The text of its string literals outside tests.
    pub(crate) strings: Vec<String>,
    /// Lines of the file, without those under `#[cfg(test)]`.
    pub(crate) n_lines: usize,
}

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let (mut code, literals) = blank_comments_and_literals(text);
        let mut n_test_lines = 0;
        let mut tests: Vec<(usize, usize)> = Vec::new();
        while let Some(start) = find(&code, "#[cfg(test)]") {
            let end = end_of_item(&code, start);
            n_test_lines +=
                code[start..end].iter().filter(|character| **character == '\n').count() + 1;
            blank(&mut code[start..end]);
            tests.push((start, end));
        }
        let outside_tests =
            |at: usize| !tests.iter().any(|(start, end)| (*start..*end).contains(&at));
        let strings = literals
            .into_iter()
            .filter(|(at, _)| outside_tests(*at))
            .map(|(_, literal)| literal)
            .collect();
        let n_lines = text.lines().count().saturating_sub(n_test_lines);
        Self { code: code.into_iter().collect(), strings, n_lines }
    }

    /// Whether the code has this run of tokens, such as `Utc::now`, as whole words.
    pub(crate) fn names(&self, words: &str) -> bool {
        let part_of_word = |character: Option<char>| character.is_some_and(is_word);
        self.code.match_indices(words).any(|(at, _)| {
            !part_of_word(self.code[..at].chars().next_back())
                && !part_of_word(self.code[at + words.len()..].chars().next())
        })
    }

    /// The first words of all paths: `sqlx` of `sqlx::query`, of `use sqlx;` and of `#[derive(sqlx::FromRow)]`.
    pub(crate) fn path_heads(&self) -> BTreeSet<String> {
        let tokens = self.tokens();
        let mut heads = BTreeSet::new();
        for (at, token) in tokens.iter().enumerate() {
            let before = |n: usize| at.checked_sub(n).map_or("", |index| tokens[index].as_str());
            let follows_path =
                before(2) == ">" || (before(2).starts_with(is_word) && before(2) != "use");
            let continues = before(1) == "::" && follows_path;
            let in_use = before(1) == "use" || (before(2) == "use" && before(1) == "::");
            let leads = tokens.get(at + 1).is_some_and(|next| next == "::");
            if token.starts_with(is_word) && !continues && (leads || in_use) {
                heads.insert(token.clone());
            }
        }
        heads
    }

    /// The top modules of our own that are named, in a file that is `depth` modules below the crate's root:
    /// `engine` of `crate::engine::step`, of `crate::{domain, engine::step}` and of a long enough `super::super::engine`.
    pub(crate) fn own_modules(&self, depth: usize) -> BTreeSet<String> {
        let tokens = self.tokens();
        let mut modules = BTreeSet::new();
        for at in 0..tokens.len() {
            let after_root = match tokens[at].as_str() {
                "crate" => at + 1,
                "super" if at == 0 || tokens[at - 1] != "::" => {
                    let n_supers =
                        tokens[at..].chunks(2).take_while(|pair| *pair == ["super", "::"]).count();
                    if n_supers < depth {
                        continue;
                    }
                    at + 2 * n_supers - 1
                }
                _ => continue,
            };
            if tokens.get(after_root).is_some_and(|token| token == "::") {
                modules.extend(first_words(&tokens[after_root + 1..]));
            }
        }
        modules
    }

    /// Words, `::`, and single other characters.
    fn tokens(&self) -> Vec<String> {
        let mut tokens: Vec<String> = Vec::new();
        let mut previous = ' ';
        for character in self.code.chars() {
            let continues = (is_word(character) && is_word(previous))
                || (character == ':'
                    && tokens.last().is_some_and(|token| token == ":")
                    && previous == ':');
            match tokens.last_mut() {
                Some(token) if continues => token.push(character),
                _ if character.is_whitespace() => {}
                _ => tokens.push(character.to_string()),
            }
            previous = character;
        }
        tokens
    }
}

/// The first word, or of a group in braces the first word of each of its parts.
fn first_words(tokens: &[String]) -> Vec<String> {
    if tokens.first().is_none_or(|token| token != "{") {
        return tokens.first().cloned().into_iter().collect();
    }
    let mut words = Vec::new();
    let mut depth = 0_usize;
    let mut part_begins = false;
    for token in tokens {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            word if part_begins => words.push(word.to_owned()),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        part_begins = depth == 1 && (token == "{" || token == ",");
    }
    words
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn blank(characters: &mut [char]) {
    for character in characters.iter_mut().filter(|character| **character != '\n') {
        *character = ' ';
    }
}

fn find(code: &[char], text: &str) -> Option<usize> {
    let wanted: Vec<char> = text.chars().collect();
    code.windows(wanted.len()).position(|window| window == wanted)
}

/// Where the item that starts at `start` ends: after its first `;`, or after its block.
fn end_of_item(code: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code.iter().enumerate().skip(start) {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

fn blank_comments_and_literals(text: &str) -> (Vec<char>, Vec<(usize, String)>) {
    let mut code: Vec<char> = text.chars().collect();
    let mut literals = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let end = match code[at] {
            '/' if code.get(at + 1) == Some(&'/') => after(&code, at, "\n"),
            '/' if code.get(at + 1) == Some(&'*') => after(&code, at, "*/"),
            '"' => end_of_string(&code, at),
            'r' if at == 0 || !is_word(code[at - 1]) || code[at - 1] == 'b' => {
                match raw_string(&code, at) {
                    Some(end) => end,
                    None => at,
                }
            }
            '\'' if code.get(at + 1) == Some(&'\\') => after(&code, at + 3, "'"),
            '\'' if code.get(at + 2) == Some(&'\'') => at + 3,
            _ => at,
        };
        if matches!(code[at], '"' | 'r') && end > at {
            literals.push((
                at,
                code[at..end].iter().collect::<String>().trim_matches(['r', '#', '"']).to_owned(),
            ));
        }
        blank(&mut code[at..end]);
        at = end.max(at + 1);
    }
    (code, literals)
}

fn after(code: &[char], start: usize, text: &str) -> usize {
    let rest = code.get(start..).unwrap_or_default();
    find(rest, text).map_or(code.len(), |found| start + found + text.len())
}

fn end_of_string(code: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < code.len() && code[at] != '"' {
        at += if code[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(code.len())
}

/// The end of `r"…"` or `r#"…"#`; `None` if no raw string starts here.
fn raw_string(code: &[char], start: usize) -> Option<usize> {
    let n_hashes = code[start + 1..].iter().take_while(|character| **character == '#').count();
    let quote = start + 1 + n_hashes;
    if code.get(quote) != Some(&'"') {
        return None;
    }
    Some(after(code, quote + 1, &format!("\"{}", "#".repeat(n_hashes))))
}
