//! Example bodies in CSV and NDJSON: the worked example again, a row of each list.

use serde_json::{Value, json};

use super::examples::{dropped_events, entry_with_data, reconciliation, row, with};

pub(super) fn windows_csv() -> &'static str {
    "start,end,currency,orders,revenue,final,batch_id,written_at,closed_by,late_since_orders,late_since_revenue\r\n\
     2026-10-01T09:00:00Z,2026-10-01T10:00:00Z,USD,3,68.50,true,3,2026-10-01T11:30:01.530118Z,watermark,1,22.00\r\n"
}

pub(super) fn windows_ndjson() -> String {
    line(&row())
}

pub(super) fn hourly_sales_csv() -> &'static str {
    "hour,start,end,currency,orders,revenue,final,batch_id,written_at,closed_by,late_since_orders,late_since_revenue\r\n\
     2026-10-01T09:00:00Z,2026-10-01T09:00:00Z,2026-10-01T10:00:00Z,USD,3,68.50,true,3,2026-10-01T11:30:01.530118Z,\
     watermark,1,22.00\r\n"
}

pub(super) fn hourly_sales_ndjson() -> String {
    line(&with(json!({ "hour": "2026-10-01T09:00:00Z" }), row()))
}

pub(super) fn progress_csv() -> &'static str {
    "query,batch_id,timestamp,events_in,late_events,duplicates,late_watermark,watermark,event_time_min,event_time_max,\
     event_time_avg,rows_written,state_windows,state_updated,state_removed,position_from,position_to,duration_ms_read,\
     duration_ms_compute,duration_ms_commit,duration_ms_total,events_per_second,closed_by\r\n\
     hourly_sales,4,2026-10-01T12:40:02.118204Z,3,1,0,2026-10-01T10:30:00.000Z,2026-10-01T10:30:00.000Z,\
     2026-10-01T09:50:00Z,2026-10-01T12:40:00Z,2026-10-01T11:05:00Z,0,3,2,0,6,9,0.412,0.021,1.873,2.341,1281.5,\r\n"
}

pub(super) fn progress_ndjson() -> String {
    line(&entry_with_data())
}

pub(super) fn dropped_events_csv() -> &'static str {
    "seq,received_at,event_id,order_id,status,amount,currency,event_time,customer_id,store_id,till_id,item_count,\
     attributes,reason,windows,watermark,late_by,batch_id\r\n\
     7,2026-10-01T12:40:01.920417Z,1006-placed,1006,placed,22.00,USD,2026-10-01T09:50:00Z,,,,,{},late,\
     2026-10-01T09:00:00Z/2026-10-01T10:00:00Z,2026-10-01T10:30:00.000Z,100 minutes,4\r\n"
}

pub(super) fn dropped_events_ndjson() -> String {
    line(&dropped_events()["dropped_events"][0])
}

pub(super) fn reconciliation_csv() -> &'static str {
    "start,end,currency,stream_orders,stream_revenue,recount_orders,recount_revenue,difference_orders,\
     difference_revenue,late_orders,late_revenue,late_event_ids,open_orders,open_revenue,waiting_orders,\
     waiting_revenue,repeats_orders,repeats_revenue,duplicates_orders,duplicates_revenue,quarantined_orders,\
     quarantined_revenue,corrections_orders,corrections_revenue,final,status,findings\r\n\
     2026-10-01T09:00:00Z,2026-10-01T10:00:00Z,USD,3,68.50,4,90.50,1,22.00,1,22.00,\"[\"\"1006-placed\"\"]\",\
     0,0.00,0,0.00,0,0.00,0,0.00,0,0.00,0,0.00,true,late,[]\r\n"
}

pub(super) fn reconciliation_ndjson() -> String {
    line(&reconciliation()["windows"][0])
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
