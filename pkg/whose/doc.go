// Package whose tells whose task a request of a provider's API is (wire.md §4). Agents do not say so; what they send is
// a history that grows, is gone back in, is compacted by themselves, and is shared by sub-agents.
//
//	Tenant    a namespace out of the caller's key: two keys never meet
//	Identify  what the request says of itself: client, session, sub-agent; or that it is no step of an agent at all
//	Match     the task, by (in this order) its explicit name, the longest known prefix of its history within its session,
//	          then within its tenant, the ids of its tool calls, and the session alone
//
// What it matches against stands in the log: frames carry marks ([record.Marks]) and the session, so that another
// gateway, or this one after a restart, finds the same task. A name that it gives to a new task follows from the request,
// so that two gateways, of which one has not heard yet of what the other did, agree on it.
//
// All but [LoadSecret] is without side effects, and nothing in it waits but for the index that it asks.
package whose
