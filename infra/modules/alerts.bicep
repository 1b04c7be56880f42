// Alerts on what the worker logs. Each line of the worker is a JSON object; what happened is its `event`.

@description('Azure region.')
param location string

@description('First part of the names of the alerts: the name of the function app.')
param name string

@description('Resource id of the app\'s telemetry.')
param insightsId string

@description('Resource ids of the action groups that are told.')
param actionGroupIds string[]

@description('Resource tags.')
param tags object = {}

var lines = 'traces | extend line = parse_json(message) | extend event = tostring(line.event)'

// Jobs that wait are looked at ever less often, at last once an hour, so one line of them must be enough.
// every, window: how often the query is asked, and how far back it looks. It fires with more lines than threshold; with
// fewer than one where `missing` is true.
var alerts = [
  {
    name: 'jobs-fail'
    description: 'More than half of the jobs that ended in the last six hours failed.'
    query: '${lines} | where event == "finished" and tostring(line.result) in ("completed", "failed") | summarize failed = countif(tostring(line.result) == "failed"), jobs = count() | where jobs >= 3 and failed * 2 > jobs'
    threshold: 0
    missing: false
    every: 'PT1H'
    window: 'PT6H'
    severity: 2
  }
  {
    name: 'blob-access-denied'
    description: 'Nodes could not read an input or store a result.'
    query: '${lines} | where event == "ended" and tostring(line.failure) endswith "AccessDenied"'
    threshold: 0
    missing: false
    every: 'PT15M'
    window: 'PT15M'
    severity: 1
  }
  {
    name: 'no-nodes'
    description: 'A job waits, or was given to a pool without a node in sight, because a quota is used up or Azure has no such nodes.'
    query: '${lines} | where event == "waits" or (event == "routed" and tostring(line.why) contains "no candidate is free or can grow") | where strcat(tostring(line.why), tostring(line.rejected)) matches regex "quota|found no capacity|has only lost nodes"'
    threshold: 0
    missing: false
    every: 'PT30M'
    window: 'PT30M'
    severity: 3
  }
  {
    name: 'sick-pool'
    description: 'A pool is of no use as it is set up: its nodes never work, its autoscale has stopped, Azure refuses its configuration, or it is not there.'
    query: '${lines} | where event in ("pool demoted", "autoscale enabled again", "scheduling disabled on a node that fails every task", "unknown resize error, taken for lack of capacity") or (event in ("waits", "routed") and strcat(tostring(line.why), tostring(line.rejected)) matches regex "cannot allocate nodes|does not exist")'
    threshold: 0
    missing: false
    every: 'PT30M'
    window: 'PT30M'
    severity: 2
  }
  {
    name: 'preemptions'
    description: 'Many Spot nodes are taken away while they work: more nodes of the other tier, or Dedicated ones, may be cheaper.'
    query: '${lines} | where event in ("preempted", "was interrupted and runs again")'
    threshold: 10
    missing: false
    every: 'P1D'
    window: 'P1D'
    severity: 3
  }
  {
    name: 'jobs-wait'
    description: 'A job has waited for half an hour and goes on waiting.'
    query: '${lines} | where event == "waits" | summarize pause = max(tolong(line.seconds)), looks = count() by kind = tostring(line.kind), job = tostring(line.job) | where pause >= 1500 or looks >= 30'
    threshold: 0
    missing: false
    every: 'PT1H'
    window: 'PT2H'
    severity: 3
  }
  {
    name: 'messages-rejected'
    description: 'Messages were rejected or came from a poison queue; they are kept under rejected/ in the worker\'s container.'
    query: '${lines} | where event == "message rejected"'
    threshold: 0
    missing: false
    every: 'PT15M'
    window: 'PT15M'
    severity: 2
  }
  {
    name: 'operator-needed'
    description: 'A job waits for an operator; the line says why.'
    query: '${lines} | where event == "waits for an operator"'
    threshold: 0
    missing: false
    every: 'PT15M'
    window: 'PT15M'
    severity: 1
  }
  {
    name: 'worker-fault'
    description: 'The timer could not deal with a record or a poison message, did not get through, or met a task that nobody knows.'
    query: '${lines} | where event in ("record not looked at", "message not looked at", "part of the run failed", "orphan task", "tick cut short", "completed task not reconciled; Batch forgets it after 7 days", "HASTE\'s record is not a JSON object")'
    threshold: 0
    missing: false
    every: 'PT30M'
    window: 'PT30M'
    severity: 2
  }
  {
    name: 'not-alive'
    description: 'The timer has not succeeded for a quarter of an hour: the app does not run, or cannot start.'
    query: 'requests | where name == "watch" and success == true'
    threshold: 1
    missing: true
    every: 'PT15M'
    window: 'PT15M'
    severity: 1
  }
]

resource alert 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for item in alerts: {
    name: '${name}-${item.name}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: '${name}: ${item.name}'
      description: item.description
      severity: item.severity
      enabled: true
      scopes: [
        insightsId
      ]
      evaluationFrequency: item.every
      // One that is asked once a day would not be resolved by Azure, and fire the first time only.
      autoMitigate: item.every != 'P1D'
      windowSize: item.window
      criteria: {
        allOf: [
          {
            query: item.query
            timeAggregation: 'Count'
            operator: item.missing ? 'LessThan' : 'GreaterThan'
            threshold: item.threshold
          }
        ]
      }
      actions: {
        actionGroups: actionGroupIds
      }
    }
  }
]
