//go:build unix

package doctest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// shell is a reader's: it stands in a copy of the repository's root, remembers
// variables from block to block, and answers yes when it is asked.
type shell struct {
	root string // with bin/dakghar in it
	env  []string
}

// openShell makes the root: everything of the repository by links, but for what
// is built, which is ours.
func openShell(dir, command string, files map[string]string) (*shell, error) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	s := &shell{root: filepath.Join(dir, "root")}
	if err := os.MkdirAll(filepath.Join(s.root, "bin"), 0o750); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(repository)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() != "bin" && e.Name() != "build" && !strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, os.Symlink(filepath.Join(repository, e.Name()), filepath.Join(s.root, e.Name())))
		}
	}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.root, name), []byte(text), 0o600))
	}
	err = errors.Join(err,
		os.Symlink(command, filepath.Join(s.root, "bin", "dakghar")),
		os.WriteFile(filepath.Join(dir, "state"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "yes"), []byte(strings.Repeat("yes\n", 1<<14)), 0o600))
	s.env = []string{
		"PATH=" + filepath.Join(s.root, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir,
		"AWS_EC2_METADATA_DISABLED=true", "DOCTEST_STATE=" + filepath.Join(dir, "state"),
	}
	return s, err
}

// remember carries the variables over to the next block.
const remember = `. "$DOCTEST_STATE"; trap 'export -p > "$DOCTEST_STATE"' EXIT; set -a
`

// blockTime bounds one block; the slowest waits until every process has heard of
// the end of a pause.
const blockTime = 90 * time.Second

// run runs a block and returns what it printed, on both outputs. What it leaves
// running ends with it.
func (s *shell) run(ctx context.Context, block string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTime)
	defer cancel()
	// Output goes to a file: a pipe would keep us waiting for what runs on.
	printed, err := os.Create(filepath.Join(filepath.Dir(s.root), "printed"))
	if err != nil {
		return "", err
	}
	defer printed.Close()
	yes, err := os.Open(filepath.Join(filepath.Dir(s.root), "yes"))
	if err != nil {
		return "", err
	}
	defer yes.Close()
	bash := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", remember+block)
	bash.Dir, bash.Env, bash.Stdin, bash.Stdout, bash.Stderr = s.root, s.env, yes, printed, printed
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	bash.Cancel = func() error { return syscall.Kill(-bash.Process.Pid, syscall.SIGKILL) }
	err = bash.Run()
	if bash.Process != nil {
		_ = syscall.Kill(-bash.Process.Pid, syscall.SIGKILL) // nobody is left, as a rule
	}
	said, readErr := os.ReadFile(printed.Name())
	if ctx.Err() != nil {
		err = fmt.Errorf("it does not end within %s", blockTime)
	}
	return string(said), errors.Join(err, readErr)
}

// understood has bash read a block without running it.
func understood(ctx context.Context, block string) error {
	bash := exec.CommandContext(ctx, "bash", "-n")
	bash.Stdin = strings.NewReader(block)
	if said, err := bash.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}
