# Owns: the work of the vim row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
seq 1 20000 | sed 's/.*/line & of some text, with words: alpha beta gamma/' > text
cat > script.vim <<'VIM'
set nocompatible undolevels=1000 nomore
edit text
%s/\v(line) (\d+)/\=submatch(2) * 3 . ' ' . toupper(submatch(1))/
g/7 LINE/normal! Aend
g/5 LINE/delete
sort! n
let words = {}
for line in getline(1, '$')
  for word in split(line)
    let words[word] = get(words, word, 0) + 1
  endfor
endfor
call append('$', 'words ' . len(words))
normal! ggdd
undo
redo
let longer = repeat(['abc' . repeat('x', 200)], 4000)
call append(line('$'), longer)
silent! %s/x\{50}/<&>/g
let @q = "ggyyGp"
normal! 20@q
call append('$', string(sort(map(range(2000), 'v:val * 7919 % 1009'), 'n')[:9]))
syntax on
setfiletype c
redraw
write! out
split other | new third | only!
qall!
VIM
vim -Nu NONE -i NONE -n -es -S script.vim < /dev/null
wc out
sha256sum out
tail -1 out
echo "vim done"
