package main

import (
	"sync"
	"time"
)

const (
	// tolerated is how long a status may be behind the traffic, or before it.
	tolerated = 2 * time.Second
	// probesPerSecond bounds what the search for lies costs the machine.
	probesPerSecond = 150
	reprobeAfter    = 250 * time.Millisecond
)

// Lies are statuses that were false for longer than tolerated. A set is probed when it says that it
// is programmed, and those that do not say so are probed in turn: a lie is never claimed without
// two observations that far apart, but a short one may go unseen among thousands of sets.
type Lies struct {
	ProgrammedNotAnswering int     `json:"programmedNotAnswering"`
	AnsweringNotProgrammed int     `json:"answeringNotProgrammed"`
	LongestMs              float64 `json:"longestMs"`
	// Lasting are those that had not ended when the search did.
	Lasting int `json:"lasting"`
	Probes  int `json:"probes"`
}

// add counts those of another search as well.
func (l *Lies) add(other Lies) {
	l.ProgrammedNotAnswering += other.ProgrammedNotAnswering
	l.AnsweringNotProgrammed += other.AnsweringNotProgrammed
	l.LongestMs = max(l.LongestMs, other.LongestMs)
	l.Lasting += other.Lasting
	l.Probes += other.Probes
}

type truth struct {
	tenant     *Tenant
	programmed bool
	since      time.Time
	// answered is when the tenant was first seen to answer while its status did not say so, or,
	// for one that says so, since it says so.
	answered time.Time
	probed   time.Time
	// failed is the last time at which it was asked, and did not answer, though its status says so.
	failed time.Time
}

// LieDetector compares statuses with traffic while a size is being reached.
type LieDetector struct {
	mutex    sync.Mutex
	address  string
	truths   map[string]*truth
	order    []string
	next     int
	urgent   []string
	lies     Lies
	statuses func(key string) (setState, bool)
}

func newLieDetector(address string, statuses func(string) (setState, bool)) *LieDetector {
	return &LieDetector{address: address, truths: map[string]*truth{}, statuses: statuses}
}

// add is called when the API server has taken the set and its routes.
func (l *LieDetector) add(tenant *Tenant) {
	l.mutex.Lock()
	l.truths[tenant.key()] = &truth{tenant: tenant}
	l.order = append(l.order, tenant.key())
	l.mutex.Unlock()
	// Read when changes are already followed, so that none falls in between.
	if state, known := l.statuses(tenant.key()); known {
		l.onSet(tenant.key(), state)
	}
}

func (l *LieDetector) onSet(key string, state setState) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	each, known := l.truths[key]
	if !known || each.programmed == state.programmed || state.since.Before(each.since) {
		return
	}
	if state.programmed {
		l.judgeLate(each, state.since)
		l.urgent = append(l.urgent, key)
	}
	each.programmed, each.since = state.programmed, state.since
	each.answered, each.failed = time.Time{}, time.Time{}
}

// judgeLate is for one that answered before its status said so.
func (l *LieDetector) judgeLate(each *truth, until time.Time) {
	if each.answered.IsZero() {
		return
	}
	if behind := until.Sub(each.answered); behind > tolerated {
		l.lies.AnsweringNotProgrammed++
		l.lies.LongestMs = max(l.lies.LongestMs, milliseconds(behind))
	}
}

// run probes until stop is closed.
func (l *LieDetector) run(stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second / probesPerSecond)
	defer ticker.Stop()
	running := make(chan struct{}, 16)
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		if each := l.choose(); each != nil {
			select {
			case running <- struct{}{}:
				go func() {
					l.probe(each)
					<-running
				}()
			default:
			}
		}
	}
}

// choose gives the next one to probe: first those that have just claimed to be programmed, and
// those that claimed and did not answer; then, in turn, those that claim nothing and have not
// answered.
func (l *LieDetector) choose() *truth {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	for tries := len(l.urgent); tries > 0; tries-- {
		key := l.urgent[0]
		l.urgent = l.urgent[1:]
		each := l.truths[key]
		if !each.programmed || !each.answered.IsZero() {
			continue
		}
		l.urgent = append(l.urgent, key)
		if now.Sub(each.probed) >= reprobeAfter {
			each.probed = now
			return each
		}
	}
	for tries := len(l.order); tries > 0; tries-- {
		each := l.truths[l.order[l.next%len(l.order)]]
		l.next++
		if !each.programmed && each.answered.IsZero() && now.Sub(each.probed) >= reprobeAfter {
			each.probed = now
			return each
		}
	}
	return nil
}

func (l *LieDetector) probe(each *truth) {
	began := time.Now()
	connection, err := connect(l.address, each.tenant.host)
	answers := false
	if err == nil {
		// A listener that is programmed shows its certificate; that its routes are served as well
		// is no claim of this condition, so it is asked only of those that claim nothing.
		shown := connection.leaf() == each.tenant.certificate.leaf
		answer, failure := connection.get(routePath(0))
		connection.close()
		l.mutex.Lock()
		claims := each.programmed
		l.mutex.Unlock()
		answers = shown && failure == nil && (claims || answer.status == 200)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lies.Probes++
	switch {
	case answers && each.answered.IsZero():
		each.answered = time.Now()
		if each.programmed {
			l.judgeEarly(each)
		}
	case !answers && each.programmed && began.After(each.since):
		each.failed = began
	}
}

// judgeEarly is for one whose status said so before it answered. Only a request that failed proves
// it: the first one may come late, when thousands of sets become programmed at once.
func (l *LieDetector) judgeEarly(each *truth) bool {
	ahead := each.failed.Sub(each.since)
	if each.failed.IsZero() || ahead <= tolerated {
		return false
	}
	l.lies.ProgrammedNotAnswering++
	l.lies.LongestMs = max(l.lies.LongestMs, milliseconds(ahead))
	return true
}

// finish adds those that are lies to this moment.
func (l *LieDetector) finish() Lies {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	for _, each := range l.truths {
		switch {
		case each.programmed && each.answered.IsZero():
			if l.judgeEarly(each) {
				l.lies.Lasting++
			}
		case !each.programmed && !each.answered.IsZero() && now.Sub(each.answered) > tolerated:
			l.lies.AnsweringNotProgrammed++
			l.lies.Lasting++
			l.lies.LongestMs = max(l.lies.LongestMs, milliseconds(now.Sub(each.answered)))
		}
	}
	return l.lies
}
