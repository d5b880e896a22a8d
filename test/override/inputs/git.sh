# Owns: the work of the git row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
export GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
git -c init.defaultBranch=main init -q repo
cd repo
git config gc.auto 0
git config core.autocrlf false
mkdir src
for i in $(seq 1 80); do
  export GIT_AUTHOR_DATE="$((1600000000 + i * 60)) +0000" GIT_COMMITTER_DATE="$((1600000000 + i * 60)) +0000"
  seq "$i" $((i + 300)) > "src/file$((i % 17)).txt"
  echo "change $i" >> log.txt
  git add -A
  git commit -q -m "commit $i" -m "body of $i"
  if ((i % 20 == 0)); then git tag -a "v$i" -m "tag $i"; git branch "b$i"; fi
done
git rev-parse HEAD
git log --oneline --graph --all | tail -3
git log -p --stat | sha256sum
git gc -q --aggressive --prune=now
git fsck --full --strict --no-progress
git count-objects -v | grep -E 'in-pack|packs|garbage'
git checkout -q b40
echo side > side.txt && git add side.txt && git commit -q -m side
git merge -q -m merged b60
git rebase -q b20 2>&1 | sed -n 1,2p
git log --format=%s -3
git checkout -q main
git diff v20 v80 | sha256sum
git blame -s log.txt | md5sum
git grep -c '^250$' | md5sum
git clone -q --no-hardlinks . ../clone
git -C ../clone log --oneline | wc -l
git archive --format=tar HEAD | sha256sum
git bundle create -q ../all.bundle --all && git bundle verify -q ../all.bundle
git repack -q -a -d -f --threads=2 --window=50 --depth=50
git rev-list --objects --all | wc -l
git fsck --full --no-progress
git stash list | wc -l
git status --short
echo "git done"
