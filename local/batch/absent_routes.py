"""Operations of the Batch API that the emulator does not have. They answer 501, so that nobody takes them for missing
resources. Each line: verb, path, the SDK's name."""

ABSENT = """
GET    /jobschedules                                       list_job_schedules
POST   /jobschedules                                       create_job_schedule
HEAD   /jobschedules/{schedule}                            job_schedule_exists
GET    /jobschedules/{schedule}                            get_job_schedule
PATCH  /jobschedules/{schedule}                            update_job_schedule
PUT    /jobschedules/{schedule}                            replace_job_schedule
DELETE /jobschedules/{schedule}                            delete_job_schedule
POST   /jobschedules/{schedule}/disable                    disable_job_schedule
POST   /jobschedules/{schedule}/enable                     enable_job_schedule
POST   /jobschedules/{schedule}/terminate                  terminate_job_schedule
GET    /jobschedules/{schedule}/jobs                       list_jobs_from_schedule
GET    /applications                                       list_applications
GET    /applications/{application}                         get_application
GET    /poolusagemetrics                                   list_pool_usage_metrics
POST   /pools/{pool}/nodes/{node}/users                    create_node_user
PUT    /pools/{pool}/nodes/{node}/users/{user}             replace_node_user
DELETE /pools/{pool}/nodes/{node}/users/{user}             delete_node_user
GET    /pools/{pool}/nodes/{node}/remoteloginsettings      get_node_remote_login_settings
POST   /pools/{pool}/nodes/{node}/uploadbatchservicelogs   upload_node_logs
GET    /pools/{pool}/nodes/{node}/extensions               list_node_extensions
GET    /pools/{pool}/nodes/{node}/extensions/{extension}   get_node_extension
GET    /pools/{pool}/nodes/{node}/files                    list_node_files
GET    /pools/{pool}/nodes/{node}/files/{file}             download_node_file
HEAD   /pools/{pool}/nodes/{node}/files/{file}             get_node_file_properties
DELETE /pools/{pool}/nodes/{node}/files/{file}             delete_node_file
"""
