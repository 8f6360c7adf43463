// Package telemetry turns what the parts report into Prometheus metrics. It is the only package that knows
// Prometheus; the registry is its own, so that a test or a program can hold several.
package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/minter"
	"github.com/ullage/ullage/pkg/proxy"
)

// Metrics are a process's metrics.
type Metrics struct {
	registry *prometheus.Registry

	boundaries *prometheus.CounterVec
	tiers      *prometheus.CounterVec
	folds      *prometheus.CounterVec
	ahead      *prometheus.CounterVec
	repairs    *prometheus.CounterVec
	drift      *prometheus.CounterVec
	moves      *prometheus.CounterVec
	misses     prometheus.Counter
	invalid    prometheus.Counter
	saved      prometheus.Counter
	took       *prometheus.HistogramVec
	waited     prometheus.Histogram
	mints      *prometheus.CounterVec
	mintTook   prometheus.Histogram
	mintLag    prometheus.Histogram
	answers    *prometheus.CounterVec
	refused    *prometheus.CounterVec
	calls      *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	callTook   prometheus.Histogram
	proxied    *prometheus.CounterVec
	added      *prometheus.HistogramVec
	requests   *prometheus.CounterVec
	answered   *prometheus.HistogramVec
}

var (
	fine = prometheus.ExponentialBuckets(0.0001, 2, 18) // 0.1 ms to 13 s
	slow = prometheus.ExponentialBuckets(0.005, 2, 17)  // 5 ms to 330 s: what a model takes part in
)

// New makes the metrics of a process with this name.
func New(process string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ullage_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(buckets []float64, name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ullage_" + name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.boundaries = counter("boundaries_total", "Preflights and steps by outcome.", "boundary", "outcome")
	m.tiers = counter("passes_total", "Passes by the highest tier that acted.", "tier")
	m.folds = counter("folds_total", "Floor summaries applied, by source.", "source")
	m.ahead = counter("folds_ahead_total", "Folds asked for before they are needed: asked, taken, late (a boundary was held for one or waited for it), missed (a boundary waited for a fold that nobody had made).", "event")
	m.repairs = counter("repairs_total", "What code put right in what a model wrote, in summaries applied, by kind. p0_lost must stay 0.", "kind")
	m.repairs.WithLabelValues("p0_lost")
	m.drift = counter("drift_lines_total", "Lines of digests that were made anew from raw: kept, reworded, lost, gained.", "line")
	m.moves = counter("moves_total", "Forms applied, by rung.", "rung")
	m.misses = counter("misses_total", "Tool parts that a pass found without a form.").WithLabelValues()
	m.invalid = counter("invalid_views_total", "Reduced views that the validator refused; the unreduced request went out.").WithLabelValues()
	m.saved = counter("saved_tokens_total", "Predicted tokens that views were smaller than their histories.").WithLabelValues()
	m.took = histogram(fine, "boundary_seconds", "Time of one boundary.", "boundary")
	m.waited = histogram(slow, "fold_wait_seconds", "Time that a boundary waited for a fold.").WithLabelValues().(prometheus.Histogram)
	m.mints = counter("mints_total", "Finished calls that a minter looked at, by result.", "result")
	m.mintTook = histogram(fine, "mint_seconds", "Time of one mint.").WithLabelValues().(prometheus.Histogram)
	m.mintLag = histogram(fine, "mint_lag_seconds", "From the entry on the log to its form on the log.").WithLabelValues().(prometheus.Histogram)
	m.answers = counter("fold_answers_total", "Fold requests that this summariser answered, by the source of the summary or why there is none.", "result")
	m.refused = counter("summaries_refused_total", "What a model gave instead of a summary, by reason.", "reason")
	m.calls = counter("model_calls_total", "Calls to a model by cause and result: ok, failed, refused (not asked at all).", "model", "tenant", "cause", "result")
	m.tokens = counter("model_tokens_total", "Tokens of calls to a model as it reported them: prompt, output, cache_read, cache_write.", "model", "tenant", "cause", "kind")
	m.callTook = histogram(slow, "model_call_seconds", "Time of one call to a model, repetitions and waiting included.").WithLabelValues().(prometheus.Histogram)
	m.proxied = counter("proxied_total", "Requests that the proxy took in, by surface, outcome (of the operation, or why they went through untouched), what was done about a refusal, and the provider's status.", "surface", "outcome", "healed", "status")
	m.added = histogram(fine, "proxy_added_seconds", "Time that the proxy added before a request went to the provider, healing included.", "surface")
	m.requests = counter("http_requests_total", "HTTP requests by route and status.", "route", "status")
	m.answered = histogram(fine, "http_request_seconds", "Time of one HTTP request.", "route")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ullage_process_info", Help: "Which process this is."}, []string{"process"})
	m.registry.MustRegister(info)
	info.WithLabelValues(process).Set(1)
	return m
}

// Gauge adds a gauge that is read when it is asked for.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ullage_" + name, Help: help}, read))
}

// Bus tells what the pool of summarisers did with requests and jobs.
func (m *Metrics) Bus(stats func() bus.Stats) {
	for name, c := range map[string]struct {
		help string
		read func(s *bus.Stats) uint64
	}{
		"folds_hedged_total":     {"Fold requests for which a second worker was asked.", func(s *bus.Stats) uint64 { return s.FoldsHedged }},
		"folds_busy_total":       {"Fold requests that found every worker busy.", func(s *bus.Stats) uint64 { return s.FoldsBusy }},
		"folds_shared_total":     {"Fold requests that shared a fold in hand.", func(s *bus.Stats) uint64 { return s.FoldsShared }},
		"folds_room_total":       {"Fold requests that waited for a slot of this worker.", func(s *bus.Stats) uint64 { return s.FoldsWaited }},
		"folds_displaced_total":  {"Fold requests that lost their place in the waiting room to a more urgent one.", func(s *bus.Stats) uint64 { return s.FoldsDisplaced }},
		"fold_jobs_total":        {"Queued folds done by this worker.", func(s *bus.Stats) uint64 { return s.FoldJobs }},
		"fold_job_retries_total": {"Queued folds that failed here and are tried again.", func(s *bus.Stats) uint64 { return s.FoldJobRetries }},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "ullage_" + name, Help: c.help}, func() float64 {
			s := stats()
			return float64(c.read(&s))
		}))
	}
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Boundary takes in a preflight or a step.
func (m *Metrics) Boundary(r *compactor.Result) {
	if r.Repeated {
		return
	}
	rep := &r.Report
	m.boundaries.WithLabelValues(rep.Boundary, string(rep.Outcome)).Inc()
	m.took.WithLabelValues(rep.Boundary).Observe(r.Took.Seconds())
	if rep.Tier > 0 {
		m.tiers.WithLabelValues(strconv.Itoa(int(rep.Tier))).Inc()
	}
	if rep.Fold != nil {
		m.folds.WithLabelValues(rep.Fold.Source).Inc()
		m.waited.Observe(float64(rep.Fold.WaitedMS) / 1000)
		m.summary(r)
	}
	if rep.Ahead != nil {
		m.ahead.WithLabelValues("asked").Inc()
	}
	if rep.Late {
		m.ahead.WithLabelValues("late").Inc()
	}
	for i := range rep.Moves {
		m.moves.WithLabelValues(rep.Moves[i].Rung).Inc()
	}
	m.misses.Add(float64(rep.Misses))
	m.saved.Add(float64(max(0, rep.RawTok-rep.ViewTok)))
	if r.Invalid != nil {
		m.invalid.Inc()
	}
}

// summary takes in what a summary that was applied tells of its making.
func (m *Metrics) summary(r *compactor.Result) {
	f := r.Report.Fold
	switch {
	case f.Ahead:
		m.ahead.WithLabelValues("taken").Inc()
	case r.Waited:
		m.ahead.WithLabelValues("missed").Inc()
	}
	for _, c := range f.Repairs {
		m.repairs.WithLabelValues(c.Kind).Add(float64(c.N))
	}
	if d := f.Drift; d != nil {
		for what, n := range map[string]int{"kept": d.Kept, "reworded": d.Reworded, "lost": d.Lost, "gained": d.Gained} {
			m.drift.WithLabelValues(what).Add(float64(n))
		}
	}
}

// Mint takes in one mint.
func (m *Metrics) Mint(e minter.Event) {
	if !e.Minted {
		m.mints.WithLabelValues("left").Inc()
		return
	}
	m.mints.WithLabelValues("minted").Inc()
	m.mintTook.Observe(e.Took.Seconds())
	m.mintLag.Observe(max(0, e.Lag.Seconds()))
}

// Fold takes in one answer of a summariser, in one word.
func (m *Metrics) Fold(result string) { m.answers.WithLabelValues(result).Inc() }

// Refused takes in an answer of a model that was no summary.
func (m *Metrics) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// ModelCall takes in one call to a model, as it was booked.
func (m *Metrics) ModelCall(c llm.Call) {
	result := "ok"
	switch {
	case c.Refused:
		result = "refused"
	case c.Err != nil:
		result = "failed"
	}
	m.calls.WithLabelValues(c.Model, c.Tenant, c.Cause, result).Inc()
	u := &c.Usage
	for kind, n := range map[string]int{"prompt": u.Prompt, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite} {
		m.tokens.WithLabelValues(c.Model, c.Tenant, c.Cause, kind).Add(float64(n))
	}
	m.callTook.Observe(c.Took.Seconds())
}

// Proxied takes in one request that came through the proxy.
func (m *Metrics) Proxied(e proxy.Event) {
	m.proxied.WithLabelValues(e.Surface, e.Outcome, e.Healed, strconv.Itoa(e.Status)).Inc()
	m.added.WithLabelValues(e.Surface).Observe(e.Added.Seconds())
}

// Request takes in one HTTP request.
func (m *Metrics) Request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.answered.WithLabelValues(route).Observe(took.Seconds())
}
