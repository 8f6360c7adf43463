package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// Common are the flags of every command that runs for long.
type Common struct {
	LogLevel  string `enum:"debug,info,warn,error" default:"info" env:"ULLAGE_LOG_LEVEL" help:"What is logged: debug, info, warn or error."`
	LogFormat string `enum:"text,json" default:"text" env:"ULLAGE_LOG_FORMAT" help:"How: text or json."`
}

// Logger logs to standard error.
func (c Common) Logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // the flag's enum holds valid names only
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}

// Signals is a context that ends when the process is asked to stop. A second signal stops it at once.
func Signals() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Exit ends the process: with 0, or with the error's sentence and 1.
func Exit(err error) {
	if err == nil {
		return
	}
	if e, ok := errors.AsType[*ExitError](err); ok {
		if e.Err != nil {
			fmt.Fprintln(os.Stderr, "ullage: "+e.Err.Error())
		}
		os.Exit(e.Code)
	}
	fmt.Fprintln(os.Stderr, "ullage: "+err.Error())
	os.Exit(1)
}

// ExitError ends the process with a code of its own.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Listen opens an address, with a sentence where that cannot be done.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: another program has this port; stop it, or choose another with --listen", addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: this user may not open that port; choose one above 1023 with --listen", addr)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// Terminal reports whether a file is a terminal, and how wide it is.
func Terminal(f *os.File) (width int, ok bool) {
	if !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w < 20 {
		w = 80
	}
	return w, true
}
