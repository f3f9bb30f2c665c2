package lambda

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// state is where a sandbox is between two requests of its runtime.
type state int

const (
	stateStarting state = iota // process started, has not asked for work yet
	stateIdle                  // waits for work
	stateBusy                  // has an invocation
	stateSettling              // answered, expected to ask at once
	stateSlow                  // answered, did not ask at once
	stateDead                  // killed or exited
)

// sandbox is one process and the Runtime API it talks to. Its fields below the
// blank line belong to the pool's lock.
type sandbox struct {
	pool   *Pool
	output *lineWriter
	done   chan struct{} // closed when the process is gone

	state     state
	process   *os.Process // nil until it is started
	work      chan *invocation
	current   *invocation
	sent      bool        // current is on its way to the process
	timer     *time.Timer // init limit, deadline or settle time, whichever state it is in
	initError *failure    // why the start failed, if we know better than the exit status
	extension bool        // registered: SIGTERM before SIGKILL
}

// start makes a sandbox and has it started beside the caller, whose lock must not
// wait for a new process. The lock is held.
func (p *Pool) start() {
	s := &sandbox{pool: p, state: stateStarting, done: make(chan struct{}), output: newLineWriter(p.log, "")}
	p.sandboxes = append(p.sandboxes, s)
	p.exits.Go(s.live)
}

// live is a sandbox from its start until its process is gone.
func (s *sandbox) live() {
	defer close(s.done)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.pool.cannotStart(s, fmt.Errorf("runtime API listener: %w", err))
		return
	}
	server := &http.Server{Handler: s.runtimeAPI(), ReadHeaderTimeout: s.pool.cfg.InitTimeout}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer func() { _ = server.Close() }()
	cmd := s.pool.command(listener.Addr().String(), s.output)
	if err := cmd.Start(); err != nil {
		s.pool.cannotStart(s, fmt.Errorf("%s: %w (is it built for this machine?)", s.pool.cfg.Bootstrap, err))
		return
	}
	if s.pool.cfg.Background {
		background(cmd.Process.Pid)
	}
	s.pool.launched(s, cmd.Process)
	how := "exit status 0"
	if err := cmd.Wait(); err != nil {
		how = err.Error()
	}
	s.output.flush()
	s.pool.gone(s, how)
}

func (p *Pool) command(runtimeAPI string, output *lineWriter) *exec.Cmd {
	cmd := exec.Command(p.cfg.Bootstrap)
	cmd.Dir = p.cfg.TaskRoot
	cmd.Env = p.environment(runtimeAPI)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second // a grandchild that keeps the pipe open must not keep us waiting
	cmd.SysProcAttr = processAttributes()
	return cmd
}

// environment is what Lambda gives a custom runtime, with credentials that only
// the local services accept.
// Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
func (p *Pool) environment(runtimeAPI string) []string {
	region := orDefault(p.cfg.Region, "us-east-1")
	env := map[string]string{
		"PATH":                            os.Getenv("PATH"),
		"LANG":                            "en_US.UTF-8",
		"TZ":                              ":UTC",
		"_HANDLER":                        p.cfg.Handler,
		"LAMBDA_TASK_ROOT":                p.cfg.TaskRoot,
		"LAMBDA_RUNTIME_DIR":              filepath.Dir(p.cfg.Bootstrap),
		"AWS_LAMBDA_RUNTIME_API":          runtimeAPI,
		"AWS_LAMBDA_FUNCTION_NAME":        p.cfg.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(p.cfg.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + p.cfg.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      "local",
		"AWS_REGION":                      region,
		"AWS_DEFAULT_REGION":              region,
		"AWS_ACCESS_KEY_ID":               "local",
		"AWS_SECRET_ACCESS_KEY":           "local",
	}
	for k, v := range p.cfg.Env {
		env[k] = v
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	return list
}

// pid is 0 for a process that is not there yet.
func (s *sandbox) pid() int {
	if s.process == nil {
		return 0
	}
	return s.process.Pid
}

// dispatch gives the sandbox an invocation and starts its deadline. The lock is held.
func (s *sandbox) dispatch(inv *invocation) {
	s.state = stateBusy
	s.current = inv
	s.sent = false
	s.timer = time.AfterFunc(s.pool.cfg.Timeout, func() { s.pool.expire(s, inv) })
	s.work <- inv
}

func (s *sandbox) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// kill takes the sandbox out of service for good. The lock is held.
func (s *sandbox) kill() {
	s.stopTimer()
	s.state = stateDead
	s.signalKill()
}

// signalKill kills the process; one that is not there yet is killed by launched.
// The lock is held.
func (s *sandbox) signalKill() {
	if s.process != nil {
		_ = s.process.Kill() // it may be gone already, which is what we want
	}
}

// shutdown kills the sandbox, politely if it asked for that. The lock is held.
func (s *sandbox) shutdown(grace time.Duration) {
	if !s.extension || s.process == nil {
		s.kill()
		return
	}
	s.stopTimer()
	s.state = stateDead
	process := s.process
	_ = process.Signal(syscall.SIGTERM)
	s.timer = time.AfterFunc(grace, func() { _ = process.Kill() })
}
