#!/bin/sh
# Prints the products with a word in their name. Reads {"word": "tent"} from standard input.
set -eu
cd "$(dirname "$0")/../data"

word=$(tr '\n' ' ' | sed -n 's/.*"word"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
if [ -z "$word" ]; then
  echo "word must not be empty" >&2
  exit 2
fi
grep -i -F -e "$word" products.txt || echo "no product with the word $word"
