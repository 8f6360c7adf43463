// Package hook calls an operator's own HTTP service before and after a fold, so that it may cancel the fold, have facts
// kept, guide the summary, or replace it.
//
// Both calls are a POST of one JSON object. The one before a fold:
//
//	{"hook":"before_fold","tenant":"acme","task":"t-1","cause":"step","tier":2,"from_step":1,"to_step":40,"steps":40,
//	 "can_cancel":true,"prior":"the digest so far, or nothing"}
//
// cause is step, preflight, ahead, drift, better or manual. tier is 2 or 4 of the ladder, or 0 where the fold is no
// tier's. The steps are those that the fold is about to cover, the first and the last included. A fold with can_cancel
// false is the last guard before the window overflows: it takes place whatever is answered.
//
// The service answers 204, or 200 with nothing, to let the fold go on; or 200 with an object, all of it optional:
//
//	{"cancel":true,"keep":["the staging database is read-only"],"guidance":"dwell on the schema's migration"}
//
// keep are facts that the digest then holds word for word. guidance goes to the model beside its instructions.
//
// The one after a fold has the same members, with hook "after_fold", and the digest that was made:
//
//	{"hook":"after_fold",…,"source":"model","text":"## Requests\n…"}
//
// source is static, extractive, model or raw. The answer may give another text, and facts to keep:
//
//	{"text":"## Requests\n…","keep":["…"]}
//
// A text is taken as a proposal: what may not be lost of the digest before is put back into it by code.
//
// A hook is never the cause of a stop. One that is slow, unreachable or answers in another form gives an error with a
// sentence, and the caller goes on as if there were none. Redirects are not followed. The same event may be sent more
// than once, since a step that another writer overtook is decided again; an answer should not depend on how often.
package hook
