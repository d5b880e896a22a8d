# Owns: the work of the bash row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -u
declare -A words
declare -a list
for ((i = 0; i < 6000; i++)); do
  list[i]="item-$((i * 7919 % 10007))"
  words["${list[i]%?}"]+="$i,"
done
echo "list ${#list[@]} words ${#words[@]}"
for key in "item-1" "item-100" "item-77"; do echo "$key=${words[$key]:-}"; done
text=$(for i in "${list[@]}"; do echo "$i"; done | sort -u | head -400)
echo "sorted ${#text} ${text:0:40}" | tr '\n' ' '
echo
sum=0
for n in {1..120}; do sum=$((sum + $( (echo $((n * n))) ))); done
echo "subshells $sum"
while IFS=: read -r name value; do
  printf '%s -> %s\n' "${name^^}" "${value//e/E}"
done <<HERE
one:the first line
two:$((1 + 1)) $(echo nested "$(echo deeper)")
three:${list[3]}
HERE
big=""
for ((i = 0; i < 3000; i++)); do big+="$i "; done
[[ $big =~ ([0-9]+)\ 2999 ]] && echo "matched ${BASH_REMATCH[1]} of ${#big}"
fold() { local depth=$1; ((depth == 0)) && { echo bottom; return; }; local copy=("${list[@]:0:50}"); fold $((depth - 1)); : "${copy[0]}"; }
fold 200
mapfile -t lines < <(seq 1 20000)
echo "mapped ${#lines[@]} ${lines[19999]}"
coproc worker { while read -r x; do echo $((x * 2)); done; }
echo 21 >&"${worker[1]}"
read -r answer <&"${worker[0]}"
echo "coproc $answer"
exec {worker[1]}>&-
wait
trap 'echo trapped' USR1
kill -USR1 $$
(exit 7) || echo "status $?"
echo "bash done"
